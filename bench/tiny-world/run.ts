// A training run in the tiny world: from the warm start, by any algorithm, with its curve on held-out questions.

import { join } from 'node:path';
import { LockStepRollouts, openRun, type RunFolder, runIdentity, trainRl } from '#searchloop/loop/index.js';
import { scoreRecord } from '#searchloop/reward/index.js';
import {
  type AlgorithmName,
  type RunSettings,
  readMetrics,
  runSettings,
  type StepReport,
  type Trainer,
  type TrainingSequence,
} from '#searchloop/training/index.js';
import { type TinyFigures, tinyFigures } from './figures.js';
import { openTinyHouse, type TinyHouse, type TinyIndex, type TinyPlace } from './house.js';
import { worldQuestions } from './questions.js';
import { openTinyTrainer } from './trainer.js';

const METHOD = 'search-r1';

export interface TinyRunOptions {
  readonly place: TinyPlace;
  /** Folder of the run; the same call goes on where it was stopped. */
  readonly folder: string;
  readonly algorithm: AlgorithmName;
  readonly seed: number;
  /** Passages of a search, in training and in evaluation. */
  readonly topK: number;
  readonly groupSize: number;
  /** false: the loss counts retrieved tokens as if they were sampled, the ablation of the mask. */
  readonly masked: boolean;
  /** Of `training` in the configuration, over those of `TINY_TRAINING`. */
  readonly training?: Readonly<Record<string, unknown>>;
  /** Held-out questions of the curve, and of the figures at the end. */
  readonly curveQuestions: number;
  readonly finalQuestions: number;
  readonly threads: number;
  readonly onStep?: (report: StepReport, steps: number) => void;
  readonly onCurve?: (point: CurvePoint) => void;
  readonly signal?: AbortSignal;
}

/** Settings of training in the tiny world that the preset has not. */
export const TINY_TRAINING = {
  'training.rank': 16,
  'training.alpha': 32,
  'training.learningRate': 1e-3,
  'training.valueLearningRate': 1e-3,
  'training.batchSequences': 60,
  'training.miniBatchSequences': 60,
  'training.rolloutSequences': 60,
  'training.steps': 80,
  'training.validateEvery': 10,
  'training.checkpointEvery': 20,
  'training.keepCheckpoints': 1,
  'training.actionBudget': 3,
  'training.turnTokens': 40,
  'training.observationTokens': 80,
  'training.microBatchTokens': 4096,
} as const;

export interface CurvePoint extends TinyFigures {
  readonly step: number;
}

export interface TinyRunResult {
  readonly curve: readonly CurvePoint[];
  /** At the end, on more questions than the curve's. */
  readonly final: TinyFigures;
  /** The same policy against an index without a passage. */
  readonly emptyIndex: TinyFigures;
  /** Adapter version and folder at the end. */
  readonly version: string;
  readonly folder: string;
}

export async function runTiny(options: TinyRunOptions): Promise<TinyRunResult> {
  const { place, threads } = options;
  const config = place.config({
    ...TINY_TRAINING,
    ...options.training,
    'training.seed': options.seed,
    'training.groupSize': options.groupSize,
    'rollout.topK': options.topK,
    'engine.threads': threads,
  });
  const settings = runSettings(config.training, options.algorithm);
  const sized = {
    ...config,
    engine: { ...config.engine, maxSequences: config.training.rolloutSequences },
    rollout: { ...config.rollout, ...settings.rollout },
  };
  const house = await openTinyHouse(place, sized);
  try {
    return await trainIn(house, settings, config.training.rolloutSequences, options);
  } finally {
    await house.close();
  }
}

async function trainIn(
  house: TinyHouse,
  settings: RunSettings,
  rolloutSequences: number,
  options: TinyRunOptions,
): Promise<TinyRunResult> {
  const { place, algorithm, topK, masked, curveQuestions, signal } = options;
  const identity = runIdentity(settings, {
    model: place.model.record.digest,
    index: house.parts('training').retriever?.snapshotId ?? null,
    prompt: house.parts('training').prompts.searchR1.digest,
    topK,
    rolloutSequences,
    curveQuestions,
    masked: Number(masked),
  });
  const run = await openRun(options.folder, {
    identity: { ...identity, algorithm },
    resume: true,
    ...(signal === undefined ? {} : { signal }),
  });
  try {
    const trainer = await openTinyTrainer(run, settings, { ...place, threads: options.threads });
    try {
      return await withTrainer(house, run, trainer, { ...options, settings });
    } finally {
      await trainer.close();
    }
  } finally {
    await run.release();
  }
}

async function withTrainer(
  house: TinyHouse,
  run: RunFolder,
  trainer: Trainer,
  options: TinyRunOptions & { readonly settings: RunSettings },
): Promise<TinyRunResult> {
  const { place, topK, settings, signal } = options;
  const rollouts = new LockStepRollouts({
    engine: house.engine,
    parts: house.parts('training'),
    method: METHOD,
    topK,
  });
  const heldOut = worldQuestions(place.world, 'held-out');
  const figuresOf = async (index: TinyIndex, count: number): Promise<TinyFigures> =>
    tinyFigures(house, { index, topK, questions: heldOut.slice(0, count), signal });
  const outcome = await trainRl(
    {
      settings,
      run,
      trainer: options.masked ? trainer : unmasked(trainer),
      rollouts,
      questions: worldQuestions(place.world, 'training'),
      tokenizer: house.tokenizer,
      score: (record, { goldenAnswers }) => scoreRecord(record, house.tokenizer, goldenAnswers),
      reference: null,
      validate: async ({ folder, version }) => {
        await rollouts.use(folder, version);
        return { ...(await figuresOf('all', options.curveQuestions)) };
      },
    },
    {
      ...(signal === undefined ? {} : { signal }),
      ...(options.onStep === undefined ? {} : { onStep: options.onStep }),
      onValidation: (figures, step) => options.onCurve?.({ ...(figures as unknown as TinyFigures), step }),
    },
  );
  await rollouts.use(outcome.folder, outcome.version);
  return {
    curve: (await readMetrics(join(run.folder, 'validation.jsonl'))) as unknown as CurvePoint[],
    final: await figuresOf('all', options.finalQuestions),
    emptyIndex: await figuresOf('empty', options.finalQuestions),
    version: outcome.version,
    folder: outcome.folder,
  };
}

/** A trainer whose loss counts retrieved tokens too. The engine never sampled them, so it has no weights for them. */
function unmasked(trainer: Trainer): Trainer {
  const open = (sequence: TrainingSequence): TrainingSequence => ({
    ...sequence,
    lossMask: sequence.lossMask.map((mask, t) => Math.max(mask, sequence.environmentMask[t] as number)),
    rollout: sequence.rollout === null ? null : { ...sequence.rollout, engineLogprobs: null },
  });
  return new Proxy(trainer, {
    get(target, key) {
      if (key === 'run')
        return (...[work, options]: Parameters<Trainer['run']>) =>
          target.run({ ...work, sequences: work.sequences.map(open) }, options);
      const value = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
