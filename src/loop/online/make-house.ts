// Puts together what the loop works with: settings, rewards, gate, trainer, and the engine that the server uses.

import type { Config } from '../../config/index.js';
import { readQuestions } from '../../evaluation/index.js';
import { openScorers, rewardSettings } from '../../reward/index.js';
import { openTrainer, type RunSettings } from '../../training/index.js';
import type { TrajectoryStore } from '../../trajectory/index.js';
import { canonicalJson, sha256Hex } from '../../util/digest.js';
import type { RunIdentity } from '../offline/run-folder.js';
import type { GateSettings } from './gate/decide.js';
import type { LoopHouse } from './house.js';
import type { LoopOptions } from './loop-options.js';
import { createGrader } from './rewards.js';
import { SearchOutages } from './search-outages.js';
import type { PausableSpec } from './trainer-task.js';

/** What was found out about the loop before. */
export interface HouseFacts {
  readonly identity: RunIdentity;
  readonly run: RunSettings;
  readonly precision: PausableSpec['precision'];
  /** Through which the loop's state is written. */
  readonly store: TrajectoryStore;
  /** Folder of the adapter that training begins with; null: the base model. */
  readonly adapter: string | null;
  /** Where the trainer's checkpoints lie. */
  readonly checkpoints: string;
}

export interface MadeHouse {
  readonly house: LoopHouse;
  /** Digest of what the habits of rollouts depend on beside the policy. */
  readonly habits: string;
}

export async function makeHouse(options: LoopOptions, facts: HouseFacts): Promise<MadeHouse> {
  const { config, folder, engine, priority, parts, onNote, onFailure } = options;
  const { run, store, checkpoints } = facts;
  const reward = rewardSettings(config.training);
  const { scorer, judge } = await openScorers(config.reward, onNote);
  const { majority } = config.reward;
  const rewards = { reward, scorers: [scorer?.name ?? null, judge?.name ?? null, majority] };
  const prompt = parts.prompts.searchR1.digest;
  const { enabled: _enabled, pollMs: _poll, webhooks: _hooks, ...learning } = config.loop;
  const configDigest = digestOf({ identity: facts.identity, run, ...rewards, learning, prompt });
  const training = { ...parts, config: { ...config.rollout, ...run.rollout } };
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const spec = trainerSpec(options, facts, pause);
  const house: LoopHouse = {
    engine,
    priority,
    store,
    training,
    serving: { ...parts, config: config.rollout },
    topK: config.rollout.topK,
    outages: new SearchOutages(),
    settings: config.loop,
    run,
    grade:
      options.grade ??
      createGrader({ scorer, judge, tokenizer: parts.tokenizer, settings: reward, majority }),
    canJudge: judge !== null,
    learnsUnlabelled: judge !== null || majority,
    gate: { ...gateSettings(config), ...options.gate },
    gateQuestions: config.loop.gateData === null ? [] : await readQuestions(config.loop.gateData),
    folder,
    configDigest,
    pause,
    openTrainer: (from) =>
      openTrainer({
        entry: 'loop/online/trainer-task',
        spec,
        root: checkpoints,
        configDigest,
        from,
        critic: run.usesCritic,
        niceness: config.training.niceness,
      }),
    onNote,
    onFailure,
  };
  const index = parts.retriever?.snapshotId ?? null;
  const habits = { rollout: training.config, prompt, index, mode: config.loop.mode, ...rewards };
  return { house, habits: digestOf(habits) };
}

const digestOf = (value: unknown): string => sha256Hex(canonicalJson(value));

function trainerSpec(
  { config, home, engine, threads }: LoopOptions,
  { run, precision, adapter }: HouseFacts,
  pause: Int32Array,
): PausableSpec {
  return {
    home,
    modelId: engine.info.modelId,
    precision,
    trained: 'lora',
    rank: run.rank,
    alpha: run.alpha,
    seed: run.seed,
    adapter,
    critic: run.usesCritic,
    threads: config.training.threads || threads,
    lanes: run.lanes,
    activationBytes: config.training.activationMebibytes * 2 ** 20,
    pause,
  };
}

/** A stretch of candidates on the same questions ends after so many. */
const MAX_ATTEMPTS = 20;

const gateSettings = ({ loop }: Config): GateSettings => ({
  questions: loop.gateQuestions,
  margin: loop.gateMargin,
  alpha: loop.gateAlpha,
  confirmEvery: loop.confirmEvery,
  maxAttempts: MAX_ATTEMPTS,
  maxKl: loop.maxKl,
  maxValidityLoss: loop.maxValidityLoss,
});
