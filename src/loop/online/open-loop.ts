// Puts the loop together: settings, folder, trainer, state, and the engine that the server uses.

import { join } from 'node:path';
import type { Config } from '../../config/index.js';
import type { Engine } from '../../engine/index.js';
import { ConfigError, IntegrityError } from '../../errors.js';
import { readQuestions } from '../../evaluation/index.js';
import { openScorers, type RewardSettings } from '../../reward/index.js';
import { openTrainer } from '../../training/index.js';
import type { TrajectoryStore } from '../../trajectory/index.js';
import { canonicalJson, sha256Hex } from '../../util/digest.js';
import { learnedSoFar } from '../offline/learned.js';
import type { RolloutParts } from '../offline/lock-step-rollouts.js';
import { guardUnder } from './collapse-guard.js';
import type { GateSettings } from './gate/decide.js';
import type { LoopHouse } from './house.js';
import { OnlineLoop } from './online-loop.js';
import { takeOwnership } from './ownership.js';
import type { Priority } from './priority.js';
import { checkRoom } from './publish.js';
import { createGrader } from './rewards.js';
import { loopRunSettings } from './run-settings.js';
import { newLoopState, readLoopState } from './state.js';
import { BEGIN_ANEW, End, takeFolder } from './take-folder.js';
import type { PausableSpec } from './trainer-task.js';

export interface LoopOptions {
  readonly config: Config;
  /** Folder of the loop's own, in the data folder. */
  readonly folder: string;
  /** Of `homeFolder(config)`. */
  readonly home: string;
  /** Its live adapter is what the loop begins with. */
  readonly engine: Engine;
  readonly priority: Priority;
  readonly parts: Omit<RolloutParts, 'config'>;
  readonly store: TrajectoryStore;
  /** Threads of the trainer where the configuration says 0. */
  readonly threads: number;
  /** Own limits of the gate, for tests; the configuration's otherwise. */
  readonly gate?: Partial<GateSettings>;
  /** Other rewards than the configured ones. */
  readonly grade?: LoopHouse['grade'];
  readonly onNote: LoopHouse['onNote'];
  readonly onFailure: LoopHouse['onFailure'];
  /** The folder is another process's, which may live; the version that is live by the store is live here too, where it can be. */
  readonly onWait?: (reason: string) => void;
  readonly signal?: AbortSignal;
}

export interface OpenedLoop {
  readonly loop: OnlineLoop;
  /** Why it has ended though nobody closed it: another process has taken it over; null: it has not. */
  ended(): Error | null;
  /** Ends the work and gives the folder back. */
  close(): Promise<void>;
}

/** A stretch of candidates on the same questions ends after so many. */
const MAX_ATTEMPTS = 20;

/**
 * Opens the loop with the version live that was published last.
 * @throws {ConfigError} whole weights are to be trained: an engine cannot swap them; it has no room for the loop's versions
 * @throws {IntegrityError} the state in the store is that of another folder
 * @throws {InvalidInputError} the loop began with another model or adapter; a target for the KL, and no weight of it
 */
export async function openLoop(options: LoopOptions): Promise<OpenedLoop> {
  const { engine } = options;
  const started = engine.liveAdapter;
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
    const pause = new Int32Array(new SharedArrayBuffer(4));
    const spec: PausableSpec = {
      home: options.home,
      modelId: engine.info.modelId,
      precision,
      trained: 'lora',
      rank: run.rank,
      alpha: run.alpha,
      seed: run.seed,
      adapter: started?.path ?? null,
      critic: run.usesCritic,
      threads: config.training.threads || options.threads,
      lanes: run.lanes,
      activationBytes: config.training.activationMebibytes * 2 ** 20,
      pause,
    };
    const reward: RewardSettings = {
      rule: config.training.rewardRule,
      formatWeight: config.training.formatWeight,
      searchCost: config.training.searchCost,
    };
    const scorers = await openScorers(config.reward, options.onNote);
    const { enabled: _enabled, pollMs: _poll, webhooks: _hooks, ...learning } = config.loop;
    const rewarded = {
      scorers: [scorers.scorer?.name ?? null, scorers.judge?.name ?? null, config.reward.majority],
    };
    const configDigest = sha256Hex(
      canonicalJson({
        identity,
        run,
        reward,
        ...rewarded,
        learning,
        prompt: options.parts.prompts.searchR1.digest,
      }),
    );
    const training = { ...options.parts, config: { ...config.rollout, ...run.rollout } };
    const house: LoopHouse = {
      engine,
      priority: options.priority,
      store: owned,
      training,
      serving: { ...options.parts, config: config.rollout },
      topK: config.rollout.topK,
      settings: config.loop,
      run,
      grade:
        options.grade ??
        createGrader({
          ...scorers,
          tokenizer: options.parts.tokenizer,
          settings: reward,
          majority: config.reward.majority,
        }),
      canJudge: scorers.judge !== null,
      learnsUnlabelled: scorers.judge !== null || config.reward.majority,
      gate: { ...gateSettings(config), ...options.gate },
      gateQuestions: config.loop.gateData === null ? [] : await readQuestions(config.loop.gateData),
      folder,
      configDigest,
      pause,
      openTrainer: (from) =>
        openTrainer({
          entry: 'loop/online/trainer-task',
          spec,
          root: held.checkpoints,
          configDigest,
          from,
          critic: run.usesCritic,
          niceness: config.training.niceness,
        }),
      onNote: options.onNote,
      onFailure: options.onFailure,
    };
    // What the habits of rollouts depend on beside the policy.
    const habits = {
      rollout: training.config,
      prompt: options.parts.prompts.searchR1.digest,
      index: options.parts.retriever?.snapshotId ?? null,
      mode: config.loop.mode,
      reward,
      ...rewarded,
    };
    const guard = guardUnder(state, sha256Hex(canonicalJson(habits)));
    const loop = new OnlineLoop(house, { ...state, ...guard }, started?.name ?? null);
    await loop.start();
    end.stops(loop);
    return {
      loop,
      ended: () => end.error,
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

function gateSettings({ loop }: Config): GateSettings {
  return {
    questions: loop.gateQuestions,
    margin: loop.gateMargin,
    alpha: loop.gateAlpha,
    confirmEvery: loop.confirmEvery,
    maxAttempts: MAX_ATTEMPTS,
    maxKl: loop.maxKl,
    maxValidityLoss: loop.maxValidityLoss,
  };
}
