// Opens the loop: its folder, its state in the store, and the version that is live.

import { join } from 'node:path';
import type { Engine } from '../../engine/index.js';
import { ConfigError, IntegrityError } from '../../errors.js';
import { learnedSoFar } from '../offline/learned.js';
import { guardUnder } from './collapse-guard.js';
import type { LoopOptions } from './loop-options.js';
import { makeHouse } from './make-house.js';
import { OnlineLoop } from './online-loop.js';
import { takeOwnership } from './ownership.js';
import { checkRoom } from './publish.js';
import { loopRunSettings } from './run-settings.js';
import { newLoopState, readLoopState } from './state.js';
import { BEGIN_ANEW, End, takeFolder } from './take-folder.js';

export interface OpenedLoop {
  readonly loop: OnlineLoop;
  /** Why it has ended though nobody closed it: another process has taken it over; null: it has not. */
  ended(): Error | null;
  /** Whether that process has the folder, so that one can wait for its end; else it works from a copy of the folder, and to take the state back would be to fight for it. */
  mayReturn(): Promise<boolean>;
  /** Ends the work and gives the folder back. */
  close(): Promise<void>;
}

/**
 * Opens the loop with the version live that was published last.
 * @throws {ConfigError} whole weights are to be trained: an engine cannot swap them; it has no room for the loop's versions
 * @throws {IntegrityError} the state in the store is that of another folder
 * @throws {InvalidInputError} the loop began with another model or adapter; a target for the KL, and no weight of it
 */
export async function openLoop(options: LoopOptions): Promise<OpenedLoop> {
  const { engine } = options;
  const { startsWith: started = engine.liveAdapter } = options;
  try {
    return await openFrom(options, started);
  } catch (error) {
    // Whoever tries again begins with what is configured, and so do users meanwhile.
    await engine.setLiveAdapter(started?.name ?? null).catch(() => {});
    throw error;
  }
}

async function openFrom(options: LoopOptions, started: Engine['liveAdapter']): Promise<OpenedLoop> {
  const { config, engine, folder, store } = options;
  const run = loopRunSettings(config, engine.info);
  if (run.trained === 'whole')
    throw new ConfigError('the loop publishes adapters: set training.trained=lora');
  checkRoom(engine, config.engine.maxAdapters);
  // Refuses a target for the KL without a weight, rather than in each step.
  learnedSoFar(run);
  const precision = config.training.precision ?? config.engine.precision;
  const identity = {
    model: engine.info.modelDigest,
    precision,
    start: started?.version ?? 'base',
    rank: run.rank,
    alpha: run.alpha,
  };
  const end = new End(options.onFailure);
  const start = { version: identity.start, name: started?.name ?? null };
  const held = await takeFolder(options, identity, start, end);
  try {
    const stored = await readLoopState(store);
    const state = stored ?? newLoopState(config.loop.seed, identity.start);
    if (state.start !== identity.start)
      throw new IntegrityError(
        `the loop began with version ${state.start}, and ${identity.start} is configured as live now: ${BEGIN_ANEW}`,
      );
    const owned = await takeOwnership(store, folder, stored, (error) => end.by(error));
    const { house, habits } = await makeHouse(options, {
      identity,
      run,
      precision,
      store: owned,
      adapter: started?.path ?? null,
      checkpoints: held.checkpoints,
    });
    const guard = guardUnder(state, habits);
    const loop = new OnlineLoop(house, { ...state, ...guard }, started?.name ?? null);
    await loop.start();
    end.stops(loop);
    return {
      loop,
      ended: () => end.error,
      mayReturn: async () => !(await held.isHeld()),
      close: async () => {
        await loop.close();
        await held.release();
      },
    };
  } catch (error) {
    await held.release();
    throw error;
  }
}

export const loopFolder = (dataFolder: string): string => join(dataFolder, 'loop');
