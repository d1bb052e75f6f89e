// The loop's folder, taken by one process at a time; what users get while one waits for it; what ends whoever lost it.

import type { Config } from '../../config/index.js';
import type { Engine } from '../../engine/index.js';
import { InvalidInputError, UnavailableError } from '../../errors.js';
import type { TrajectoryStore } from '../../trajectory/index.js';
import type { RolloutParts } from '../offline/lock-step-rollouts.js';
import { openRun, type RunFolder, type RunIdentity } from '../offline/run-folder.js';
import type { LoopHouse } from './house.js';
import { type LookSettings, lookAgain } from './look-again.js';
import { type StartVersion, Versions } from './publish.js';
import { readLoopState } from './state.js';

export const BEGIN_ANEW =
  'set it back, or begin anew with `searchloop loop reset`: answers and feedback stay';

export interface TakeFolderOptions extends Pick<LoopHouse, 'onNote' | 'onFailure'> {
  readonly config: Config;
  readonly folder: string;
  readonly engine: Engine;
  readonly parts: Omit<RolloutParts, 'config'>;
  readonly store: TrajectoryStore;
  readonly onWait?: (reason: string) => void;
  readonly signal?: AbortSignal;
}

/** @throws {InvalidInputError} the loop began with another model or adapter */
export async function takeFolder(
  options: TakeFolderOptions,
  identity: RunIdentity,
  start: StartVersion,
  end: End,
): Promise<RunFolder> {
  const { folder, onNote, onWait, signal } = options;
  const over = new AbortController();
  let shown: Promise<void> = Promise.resolve();
  try {
    return await openRun(folder, {
      identity,
      resume: true,
      // Earlier builds wrote it. A critic may come and go with the algorithm: no policy depends on it.
      free: ['critic'],
      onNote,
      onWait: (reason) => {
        const follow = { everyMs: options.config.loop.pollMs, closed: over.signal };
        shown = followLive(options, start, follow, () => onWait?.(reason));
      },
      onLost: () => end.by(new UnavailableError(`the claim on ${folder} is gone`)),
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw new InvalidInputError(`${error.message}\n${BEGIN_ANEW}`, error.param, { cause: error });
  } finally {
    over.abort();
    await shown;
  }
}

interface Stoppable {
  stop(): void;
}

/** The one time at which another process takes the loop over. */
export class End {
  #error: Error | null = null;
  #loop: Stoppable | null = null;

  constructor(private readonly onFailure: LoopHouse['onFailure']) {}

  get error(): Error | null {
    return this.#error;
  }

  by(error: Error): void {
    if (this.#error !== null) return;
    this.#error = error;
    this.onFailure(error, 'the loop, which another process has taken over,');
    this.#loop?.stop();
  }

  stops(loop: Stoppable): void {
    this.#loop = loop;
    if (this.#error !== null) loop.stop();
  }
}

/** Users get the version that is live by the store also while the folder is another process's, which may publish others. */
function followLive(
  options: TakeFolderOptions,
  start: StartVersion,
  follow: Pick<LookSettings, 'everyMs' | 'closed'>,
  onShown: () => void,
): Promise<void> {
  let isFirst = true;
  const told = (error: Error): void => options.onFailure(error, 'the start under the version that is live');
  return lookAgain(
    async () => {
      await showLive(options, start, follow.closed).finally(() => {
        if (isFirst) onShown();
        isFirst = false;
      });
    },
    { ...follow, onFailure: told },
  );
}

async function showLive(
  { engine, folder, parts, config, store }: TakeFolderOptions,
  start: StartVersion,
  closed: AbortSignal,
): Promise<void> {
  const state = await readLoopState(store);
  if (state === null || state.start !== start.version) return;
  const versions = new Versions({ engine, folder, serving: { ...parts, config: config.rollout } }, start);
  const name = await versions.ready(state.live);
  // From then on it is for the loop to say.
  if (closed.aborted) return;
  await versions.switchTo(name);
  // The other process publishes one after the other, and the engine holds a few.
  await versions.release(state);
}
