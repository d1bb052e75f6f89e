// Opens what a training run needs: the model, the run's folder, the trainer in its thread.

import { availableParallelism } from 'node:os';
import { type Config, homeFolder } from '../config/index.js';
import { CancelledError, ConfigError } from '../errors.js';
import { openRun, type RunFolder, runIdentity } from '../loop/index.js';
import {
  type Adapter,
  type DecoderConfig,
  ensureModel,
  readAdapter,
  type StoredModel,
} from '../model/index.js';
import {
  type DecoderSpec,
  loraShape,
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
  process.once('SIGTERM', () => controller.abort(new CancelledError()));
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

/** What a run starts from, and the settings that follow from it. */
export interface RunStart {
  readonly settings: RunSettings;
  /** null: a fresh one. */
  readonly adapter: Adapter | null;
}

/**
 * Reads the adapter that a run starts from; its rank and scale are those of the run.
 * @throws {ConfigError} the configuration names others
 */
export function readStart(
  { training }: Config,
  settings: RunSettings,
  folder: string | undefined,
  decoder: DecoderConfig,
): RunStart {
  if (folder === undefined) return { settings, adapter: null };
  const adapter = readAdapter(folder, decoder);
  if (settings.trained === 'whole') return { settings, adapter };
  const { rank, alpha } = loraShape(adapter, decoder.layers);
  for (const [name, given, own] of [
    ['rank', training.rank, rank],
    ['alpha', training.alpha, alpha],
  ] as const)
    if (given !== null && Math.abs(given - own) > 1e-9 * own)
      throw new ConfigError(`training.${name} ${given}: the adapter decides, and ${folder} has ${own}`);
  return { settings: { ...settings, rank, alpha }, adapter };
}

/**
 * Takes the run's folder, opens the trainer where the run ended or at its start, and closes both when the work is done.
 * @param inputs  further digests that decide the outcome: of the data, of the index
 */
export async function withTrainer(
  { config, output, signal }: CliContext,
  { settings, adapter }: RunStart,
  flags: TrainFlags,
  { home, model }: TrainedModel,
  inputs: Readonly<Record<string, string | number | null>>,
  work: (run: RunFolder, trainer: Trainer, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const precision = config.training.precision ?? config.engine.precision;
  const identity = runIdentity(settings, {
    model: model.record.digest,
    precision,
    start: adapter?.digest ?? null,
    ...inputs,
  });
  const lost = new AbortController();
  const onLost = (): void => {
    output.note(`another process has taken ${flags.output} over: this run ends`);
    lost.abort(new CancelledError());
  };
  const { resume } = flags;
  const run = await openRun(flags.output, { identity, resume, onNote: output.note, onLost, signal });
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
      await work(run, trainer, AbortSignal.any([signal, terminated(), lost.signal]));
    } finally {
      await trainer.close();
    }
  } finally {
    await run.release();
  }
}
