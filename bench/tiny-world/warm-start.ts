// The warm start of the tiny world, made from nothing: a model with random weights, trajectories of a teacher with
// bad habits through real rollouts, supervised training of all weights, the result in half precision.

import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadConfig } from '#searchloop/config/index.js';
import { openRun, trainSft } from '#searchloop/loop/index.js';
import { importModel, type StoredModel } from '#searchloop/model/index.js';
import { type Example, runSettings, type StepReport } from '#searchloop/training/index.js';
import { canonicalJson, sha256Hex } from '#searchloop/util/digest.js';
import { openSafetensorsFile, writeSafetensors } from '#searchloop/weights/index.js';
import { TINY_SETTINGS } from './house.js';
import { buildWorldIndexes } from './indexes.js';
import { writeRandomModel, writeTinyModelFiles } from './model.js';
import { TINY_RECIPE, type TinyRecipe, type TinyStage } from './recipe.js';
import { openTinyTrainer } from './trainer.js';
import { tinyTrajectories } from './trajectories.js';
import type { World } from './world.js';

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
  readonly signal?: AbortSignal | undefined;
}

/** @returns the folder of the finished model */
export async function makeTinyWarmStart(options: TinyWarmStartOptions): Promise<string> {
  const { world, work, output, recipe = TINY_RECIPE } = options;
  const indexes = await buildWorldIndexes(join(work, 'index'), world);
  const config = loadConfig({ flags: { ...TINY_SETTINGS, 'retrieval.index': indexes.training }, env: {} });
  const start = join(work, 'random');
  await writeRandomModel(start, world, recipe.seed);
  let weights = join(start, WEIGHTS);
  for (const stage of recipe.stages) {
    const folder = join(work, stage.name);
    await writeTinyModelFiles(join(folder, 'start'), world);
    await copyFile(weights, join(folder, 'start', WEIGHTS));
    const home = join(folder, 'home');
    const model = await importModel(join(folder, 'start'), home, { id: `tiny-world-${stage.name}` });
    const { signal, onNote } = options;
    const examples = await tinyTrajectories({ world, recipe, stage, config, model, signal });
    onNote?.(`${stage.name}: ${examples.length} trajectories`);
    weights = join(await train({ ...options, recipe, stage, folder, home, model, examples }), WEIGHTS);
  }
  await writeTinyModelFiles(output, world);
  await writeHalf(weights, join(output, WEIGHTS));
  return output;
}

const WEIGHTS = 'model.safetensors';

interface TrainingParts extends TinyWarmStartOptions {
  readonly recipe: TinyRecipe;
  readonly stage: TinyStage;
  readonly folder: string;
  readonly home: string;
  readonly model: StoredModel;
  readonly examples: readonly Example[];
}

/** @returns the folder of the last checkpoint */
async function train(parts: TrainingParts): Promise<string> {
  const { recipe, stage, folder, home, model, examples, onNote, onStep, signal, threads } = parts;
  const config = loadConfig({
    flags: {
      'training.trained': 'whole',
      'training.seed': recipe.seed,
      'training.epochs': stage.epochs,
      'training.batchSequences': stage.batchSequences,
      'training.learningRate': stage.learningRate,
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
  const run = await openRun(join(folder, 'run'), {
    identity,
    resume: true,
    ...(onNote === undefined ? {} : { onNote }),
    ...(signal === undefined ? {} : { signal }),
  });
  try {
    const trainer = await openTinyTrainer(run, settings, { home, model, threads });
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
