// A whole run of reinforcement learning over the stored tiny model: engine, rollouts with searches, trainer in the pool.
// The reward is a share of the token ids, which any policy can learn to raise.

import { join } from 'node:path';
import { type Config, loadConfig } from '../../../src/config/index.js';
import { createEngine, type Engine } from '../../../src/engine/index.js';
import type { Question } from '../../../src/evaluation/index.js';
import {
  LockStepRollouts,
  openRun,
  sampleBest,
  type TrainingOutcome,
  trainRl,
} from '../../../src/loop/index.js';
import type { BestOfNOptions } from '../../../src/loop/offline/best-of-n.js';
import { importModel, openModel, preparePrecision } from '../../../src/model/index.js';
import type { Retriever } from '../../../src/retrieval/index.js';
import { inlineEncoding, loadPrompts } from '../../../src/rollout/index.js';
import { createTokenizer, type Tokenizer } from '../../../src/tokenizer/index.js';
import {
  type AlgorithmName,
  type DecoderSpec,
  type MetricsRow,
  openTrainer,
  type RunSettings,
  readMetrics,
  runSettings,
} from '../../../src/training/index.js';

export interface TinyRun {
  /** Holds the imported model; shared by runs. */
  readonly home: string;
  readonly output: string;
  readonly algorithm: AlgorithmName;
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly resume?: boolean;
  readonly stopAfter?: number;
  /** From this load of an adapter on the engine goes on with the one before, and does not say so. */
  readonly stuckFrom?: number;
  /** Asked beside the others. */
  readonly more?: readonly Question[];
}

const MODEL = 'tiny-llama';

export const importTiny = (home: string, fixtures: string) =>
  importModel(join(fixtures, 'models', MODEL), home, { id: MODEL });

const passages: Retriever = {
  info: { kind: 'bm25', name: 'two passages', passageCount: 2 },
  snapshotId: 'two-passages',
  search: async (queries) =>
    queries.map((query) => [
      { id: '1', title: 'One', text: `What was asked: ${query.slice(0, 8)}`, score: 2 },
      { id: '2', title: 'Two', text: 'Another passage.', score: 1 },
    ]),
  close: async () => {},
};

const questions = ['red', 'green', 'blue', 'white', 'black'].map((colour) => ({
  id: colour,
  dataset: colour.length > 4 ? 'long' : 'short',
  question: `What is ${colour}?`,
  goldenAnswers: [colour],
  supportingTitles: [],
}));

/** Share of low ids among the sampled tokens. */
function lowShare(record: { tokenIds: readonly number[]; lossMask: readonly number[] }): number {
  const sampled = record.tokenIds.filter((_, t) => record.lossMask[t] === 1);
  return sampled.filter((id) => id < 256).length / Math.max(1, sampled.length);
}

export interface TinyOutcome extends TrainingOutcome {
  readonly rows: MetricsRow[];
  /** Version after the last step. */
  readonly last: string;
  readonly notes: readonly string[];
}

/** Settings small enough for a run of seconds. */
function tinyConfig(flags: TinyRun['flags']): Config {
  return loadConfig({
    env: {},
    flags: {
      'training.learningRate': 0.01,
      'training.warmupShare': 0,
      'training.rank': 4,
      'training.alpha': 8,
      'training.batchSequences': 8,
      'training.groupSize': 4,
      'training.steps': 3,
      'training.validateEvery': 2,
      'training.actionBudget': 1,
      'training.turnTokens': 10,
      'training.observationTokens': 96,
      'engine.maxSequences': 4,
      'engine.maxSequenceTokens': 640,
      ...flags,
    },
  });
}

export interface TinyRollouts {
  readonly rollouts: LockStepRollouts;
  readonly tokenizer: Tokenizer;
  readonly questions: readonly Question[];
  readonly score: BestOfNOptions['score'];
}

/** Rollouts over the tiny model for the time of `act`. */
async function withTinyRollouts<Result>(
  home: string,
  config: Config,
  settings: RunSettings,
  act: (parts: TinyRollouts) => Promise<Result>,
  stuckFrom = Number.POSITIVE_INFINITY,
): Promise<Result> {
  const model = await openModel(home, MODEL);
  const tokenizerSource = await model.readTokenizer();
  const tokenizer = createTokenizer(tokenizerSource);
  const engine = await createEngine({
    modelId: MODEL,
    graphs: await preparePrecision(home, model, 'fp32'),
    tokenizer: tokenizerSource,
    settings: { ...config.engine, threads: 1 },
    lockStep: true,
    spinning: false,
  });
  try {
    const rollouts = new LockStepRollouts({
      engine: stuck(engine, stuckFrom),
      method: 'search-r1',
      topK: 2,
      parts: {
        retriever: passages,
        tokenizer,
        encoding: inlineEncoding(tokenizer),
        config: { ...config.rollout, ...settings.rollout },
        prompts: loadPrompts(config.rollout),
      },
    });
    const score: TinyRollouts['score'] = (record) => ({
      reward: lowShare(record),
      em: lowShare(record) > 0.6 ? 1 : 0,
      subEm: 0,
      f1: 0,
      formatScore: 0,
      wellFormed: false,
      searches: record.searches.length,
    });
    return await act({ rollouts, tokenizer, questions, score });
  } finally {
    await engine.close();
  }
}

/** Adapters are loaded as they are given, but the name that is sampled from stays where it was. */
function stuck(engine: Engine, from: number): Engine {
  let loads = 0;
  return new Proxy(engine, {
    get(target, key) {
      const value = Reflect.get(target, key, target);
      if (key === 'loadAdapter')
        return (...[name, ...rest]: Parameters<Engine['loadAdapter']>) =>
          target.loadAdapter(++loads < from ? name : 'aside', ...rest);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

export async function tinyRun(options: TinyRun): Promise<TinyOutcome> {
  const { home, output, algorithm, resume = false, stopAfter } = options;
  const config = tinyConfig(options.flags);
  const settings = runSettings(config.training, algorithm);
  const run = await openRun(output, { identity: { algorithm }, resume });
  const spec: DecoderSpec = {
    home,
    modelId: MODEL,
    precision: 'fp32',
    trained: 'lora',
    rank: settings.rank,
    alpha: settings.alpha,
    seed: settings.seed,
    adapter: null,
    critic: settings.usesCritic,
    threads: 1,
    lanes: settings.lanes,
    activationBytes: 2 ** 28,
  };
  const trainer = await openTrainer({
    entry: 'training/trainer/decoder-task',
    spec,
    root: run.checkpoints,
    configDigest: run.configDigest,
    from: run.from,
    niceness: 0,
  });
  const stop = new AbortController();
  const notes: string[] = [];
  const train = (parts: TinyRollouts): Promise<TrainingOutcome> =>
    trainRl(
      {
        ...parts,
        questions: [...parts.questions, ...(options.more ?? [])],
        settings,
        run,
        trainer,
        reference: null,
        validate: async ({ step }) => ({ exactMatch: step === 2 ? 1 : 0 }),
      },
      {
        signal: stop.signal,
        onStep: ({ step }) => step === stopAfter && stop.abort(),
        onNote: (line) => notes.push(line),
      },
    );
  try {
    const outcome = await withTinyRollouts(home, config, settings, train, options.stuckFrom);
    return { ...outcome, rows: await readMetrics(run.metrics), last: trainer.committed.version, notes };
  } finally {
    await trainer.close();
    await run.release();
  }
}

/** Keeps the best of three rollouts of each question; stops after the first round where asked. */
export function tinyBestOfN(
  home: string,
  adapter: { readonly folder: string; readonly version: string },
  output: string,
  more: Partial<BestOfNOptions> = {},
) {
  const config = tinyConfig({});
  return withTinyRollouts(home, config, runSettings(config.training, 'grpo'), async (parts) => {
    await parts.rollouts.use(adapter.folder, adapter.version);
    const many = Array.from({ length: 20 }, (_, i) => ({
      ...(parts.questions[i % parts.questions.length] as Question),
      id: `q${i}`,
    }));
    return sampleBest({
      ...parts,
      questions: many,
      samples: 3,
      minReward: 0.5,
      seed: 4,
      output,
      settingsDigest: 'd',
      ...more,
    });
  });
}
