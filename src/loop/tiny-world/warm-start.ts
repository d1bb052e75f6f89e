// The warm start of the tiny world, made from nothing: a model with random weights, trajectories of a teacher with
// bad habits through real rollouts, supervised training of all weights, the result in half precision.

import { join } from 'node:path';
import { type Config, loadConfig } from '../../config/index.js';
import type { EngineInfo } from '../../engine/index.js';
import {
  buildWorldIndexes,
  type World,
  type WorldQuestion,
  worldQuestions,
  writeRandomModel,
  writeTinyModelFiles,
} from '../../evaluation/index.js';
import { importModel, type StoredModel } from '../../model/index.js';
import { createRetriever } from '../../retrieval/index.js';
import { inlineEncoding, loadPrompts } from '../../rollout/index.js';
import { createTokenizer } from '../../tokenizer/index.js';
import {
  type DecoderSpec,
  derivedSeed,
  type Example,
  openTrainer,
  randomNumbers,
  runSettings,
  type StepReport,
} from '../../training/index.js';
import type { TrajectoryRecord } from '../../trajectory/index.js';
import { canonicalJson, sha256Hex } from '../../util/digest.js';
import { openSafetensorsFile, writeSafetensors } from '../../weights/index.js';
import { openRun } from '../offline/run-folder.js';
import { trainSft } from '../offline/train-sft.js';
import { type TeachingHouse, teach, teacherOf } from '../warm-start/teach.js';
import { TINY_SETTINGS } from './house.js';
import { type Habits, tinyScript, WARM_START_HABITS } from './teacher.js';

/** Everything that decides the warm start. */
export interface TinyRecipe {
  readonly seed: number;
  readonly habits: Habits;
  /** Trajectories to learn from. */
  readonly trajectories: number;
  /** Passages of a search, in turn, so that the policy has seen few and many. */
  readonly topKs: readonly number[];
  readonly epochs: number;
  readonly batchSequences: number;
  readonly learningRate: number;
}

export const TINY_RECIPE: TinyRecipe = {
  seed: 1,
  habits: WARM_START_HABITS,
  trajectories: 6000,
  topKs: [3, 1, 5],
  epochs: 8,
  batchSequences: 32,
  learningRate: 2e-3,
};

export interface TinyWarmStartOptions {
  readonly world: World;
  readonly recipe?: TinyRecipe;
  /** Folder for everything on the way; the same call goes on where one was stopped. */
  readonly work: string;
  /** Folder that becomes the model. */
  readonly output: string;
  readonly threads: number;
  readonly onNote?: (line: string) => void;
  readonly onStep?: (report: StepReport, steps: number) => void;
  readonly signal?: AbortSignal;
}

const MODEL_ID = 'tiny-world-random';

/** @returns the folder of the finished model */
export async function makeTinyWarmStart(options: TinyWarmStartOptions): Promise<string> {
  const { world, work, output, recipe = TINY_RECIPE } = options;
  const home = join(work, 'home');
  await writeRandomModel(join(work, 'random'), world, recipe.seed);
  const model = await importModel(join(work, 'random'), home, { id: MODEL_ID });
  const indexes = await buildWorldIndexes(join(work, 'index'), world);
  const config = loadConfig({ flags: { ...TINY_SETTINGS, 'retrieval.index': indexes.training }, env: {} });
  const examples = await tinyTrajectories({ ...options, recipe, config, model });
  options.onNote?.(`${examples.length} trajectories`);
  const trained = await train(options, recipe, { home, model, examples });
  await writeTinyModelFiles(output, world);
  await writeHalf(join(trained, 'model.safetensors'), join(output, 'model.safetensors'));
  return output;
}

/** Searches of several lessons travel together. */
const LESSONS_AT_ONCE = 64;

interface TeachingParts {
  readonly world: World;
  readonly recipe: TinyRecipe;
  readonly config: Config;
  readonly model: StoredModel;
  readonly signal?: AbortSignal;
}

/** Trajectories over questions of the training half, searched in the index that holds no other facts. */
export async function tinyTrajectories({
  world,
  recipe,
  config,
  model,
  signal,
}: TeachingParts): Promise<Example[]> {
  const tokenizer = createTokenizer(await model.readTokenizer());
  const retriever = await createRetriever(config);
  const house: TeachingHouse = {
    info: teacherInfo(model, tokenizer.vocabSize, config),
    tokenizer,
    encoding: inlineEncoding(tokenizer),
    retriever,
    config: config.rollout,
    prompts: loadPrompts(config.rollout),
  };
  const questions = worldQuestions(world, 'training');
  const lesson = async (i: number): Promise<TrajectoryRecord> => {
    const question = questions[i % questions.length] as WorldQuestion;
    const seed = derivedSeed(recipe.seed, 'trajectory', i);
    const topK = recipe.topKs[Math.floor(randomNumbers(seed)() * recipe.topKs.length)] as number;
    const teacher = teacherOf(tinyScript(world, question, recipe.habits, seed));
    return teach(
      house,
      { id: `tiny-${i}`, method: 'search-r1', question: question.question, topK, teacher },
      signal,
    );
  };
  try {
    const records: TrajectoryRecord[] = [];
    while (records.length < recipe.trajectories) {
      const count = Math.min(LESSONS_AT_ONCE, recipe.trajectories - records.length);
      const from = records.length;
      records.push(...(await Promise.all(Array.from({ length: count }, (_, i) => lesson(from + i)))));
    }
    return records.map(exampleOf);
  } finally {
    await retriever.close();
  }
}

function teacherInfo(model: StoredModel, vocabSize: number, config: Config): EngineInfo {
  return {
    modelId: model.record.id,
    modelDigest: model.record.digest,
    precision: config.engine.precision,
    vocabSize,
    maxSequenceTokens: config.engine.maxSequenceTokens,
    eosTokenIds: [vocabSize - 4],
    maxSequences: 1,
    fingerprint: 'teacher',
  };
}

const exampleOf = ({ id, tokenIds, lossMask, origin }: TrajectoryRecord): Example => ({
  id,
  tokenIds: Int32Array.from(tokenIds),
  lossMask: Uint8Array.from(lossMask),
  environmentMask: Uint8Array.from(origin, (from) => (from === 'environment' ? 1 : 0)),
});

/** @returns the folder of the last checkpoint */
async function train(
  options: TinyWarmStartOptions,
  recipe: TinyRecipe,
  parts: { readonly home: string; readonly model: StoredModel; readonly examples: readonly Example[] },
): Promise<string> {
  const { home, model, examples } = parts;
  const config = loadConfig({
    flags: {
      'training.trained': 'whole',
      'training.seed': recipe.seed,
      'training.epochs': recipe.epochs,
      'training.batchSequences': recipe.batchSequences,
      'training.learningRate': recipe.learningRate,
      'training.schedule': 'cosine',
      'training.warmupShare': 0.05,
      'training.weightDecay': 0.01,
      'training.checkpointEvery': 100,
      'training.keepCheckpoints': 1,
    },
    env: {},
  });
  const settings = runSettings(config.training, 'sft');
  const identity = { recipe, model: model.record.digest, data: digestOf(examples) };
  const { onNote, onStep, signal, threads } = options;
  const run = await openRun(join(options.work, 'sft'), {
    identity,
    resume: true,
    ...(onNote === undefined ? {} : { onNote }),
    ...(signal === undefined ? {} : { signal }),
  });
  try {
    const spec: DecoderSpec = {
      home,
      modelId: model.record.id,
      precision: 'fp32',
      trained: 'whole',
      rank: settings.rank,
      alpha: settings.alpha,
      seed: recipe.seed,
      adapter: null,
      critic: false,
      threads,
      activationBytes: 2 ** 31,
    };
    const trainer = await openTrainer({
      entry: 'training/trainer/decoder-task',
      spec,
      root: run.checkpoints,
      configDigest: run.configDigest,
      from: run.from,
    });
    try {
      const outcome = await trainSft(run, trainer, settings, examples, {
        ...(onStep === undefined ? {} : { onStep }),
        ...(signal === undefined ? {} : { signal }),
      });
      return outcome.folder;
    } finally {
      await trainer.close();
    }
  } finally {
    await run.release();
  }
}

const digestOf = (examples: readonly Example[]): string =>
  sha256Hex(canonicalJson(examples.map(({ tokenIds, lossMask }) => [[...tokenIds], [...lossMask]])));

async function writeHalf(from: string, to: string): Promise<void> {
  const source = openSafetensorsFile(from);
  try {
    const tensors = [...source.tensors].map(([name, { shape }]) => ({
      name,
      shape,
      type: 'F16' as const,
      data: () => source.readFloat32(name),
    }));
    await writeSafetensors(to, tensors, { format: 'pt' });
  } finally {
    source.close();
  }
}
