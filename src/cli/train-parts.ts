// Opens what a training run needs: the model, the run's folder, the trainer in its thread.

import { availableParallelism } from 'node:os';
import { homeFolder } from '../config/index.js';
import { openRun, type RunFolder, runIdentity } from '../loop/index.js';
import { type DecoderConfig, ensureModel, readAdapter, type StoredModel } from '../model/index.js';
import {
  type DecoderSpec,
  openDecoderWeights,
  openTrainer,
  type RunSettings,
  type Trainer,
} from '../training/index.js';
import type { CliContext } from './context.js';

export interface TrainFlags {
  readonly output: string;
  readonly adapter?: string;
  readonly resume: boolean;
}

export interface TrainedModel {
  readonly home: string;
  readonly model: StoredModel;
  readonly decoder: DecoderConfig;
}

/** Fires when the process is asked to end: the run then stops where it can go on. */
function terminated(): AbortSignal {
  const controller = new AbortController();
  process.once('SIGTERM', () => controller.abort());
  return controller.signal;
}

/** The policy model, fetched where it is missing. */
export async function openTrainedModel({ config, output, signal }: CliContext): Promise<TrainedModel> {
  const home = homeFolder(config);
  const progress = output.progress();
  const options = { onProgress: progress.on, onNote: output.note, signal };
  const model = await ensureModel(config.model.policy, home, options).finally(() => progress.stop());
  const source = model.openWeights();
  try {
    return { home, model, decoder: openDecoderWeights(model, source).config };
  } finally {
    source.close();
  }
}

/**
 * Takes the run's folder, opens the trainer where the run ended or at its start, and closes both when the work is done.
 * @param inputs  further digests that decide the outcome: of the data, of the index
 */
export async function withTrainer(
  { config, output, signal }: CliContext,
  settings: RunSettings,
  flags: TrainFlags,
  { home, model, decoder }: TrainedModel,
  inputs: Readonly<Record<string, string | number | null>>,
  work: (run: RunFolder, trainer: Trainer, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const precision = config.training.precision ?? config.engine.precision;
  const start = flags.adapter === undefined ? null : readAdapter(flags.adapter, decoder).digest;
  const identity = runIdentity(settings, { model: model.record.digest, precision, start, ...inputs });
  const run = await openRun(flags.output, { identity, resume: flags.resume, onNote: output.note, signal });
  if (flags.resume && run.from === null) output.note(`no run in ${flags.output} yet: a new one begins`);
  const spec: DecoderSpec = {
    home,
    modelId: model.record.id,
    precision,
    trained: settings.trained,
    rank: settings.rank,
    alpha: settings.alpha,
    seed: settings.seed,
    adapter: flags.adapter ?? null,
    critic: settings.usesCritic,
    threads: config.training.threads || availableParallelism(),
    lanes: settings.lanes,
    activationBytes: config.training.activationMebibytes * 2 ** 20,
  };
  try {
    const trainer = await openTrainer({
      entry: 'training/trainer/decoder-task',
      spec,
      root: run.checkpoints,
      configDigest: run.configDigest,
      from: run.from,
      niceness: config.training.niceness,
    });
    try {
      await work(run, trainer, AbortSignal.any([signal, terminated()]));
    } finally {
      await trainer.close();
    }
  } finally {
    await run.release();
  }
}
