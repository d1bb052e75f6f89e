import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { homeFolder } from '../config/index.js';
import { openRun, runIdentity, trainSft } from '../loop/index.js';
import { ensureModel, readAdapter } from '../model/index.js';
import {
  ALGORITHMS,
  type AlgorithmName,
  type DecoderSpec,
  openDecoderWeights,
  openTrainer,
  type RunSettings,
  readExamples,
  runSettings,
} from '../training/index.js';
import type { CliContext } from './context.js';
import { contextOf } from './context.js';
import { stepLines } from './train-view.js';
import { warmStartCommand } from './warm-start-command.js';

/** `train ALGORITHM | plot`. */
export function trainCommand(): Command {
  const command = new Command('train').description('train an adapter, offline');
  for (const [name, { summary, supervised }] of Object.entries(ALGORITHMS))
    if (supervised) command.addCommand(supervisedCommand(name as AlgorithmName, summary));
  command.addCommand(warmStartCommand());
  return command;
}

interface SupervisedFlags {
  readonly data: string;
  readonly output: string;
  readonly adapter?: string;
  readonly resume: boolean;
}

function supervisedCommand(algorithm: AlgorithmName, summary: string): Command {
  return new Command(algorithm)
    .description(summary)
    .requiredOption('-d, --data <file>', 'trajectories to learn from (JSONL of records)')
    .requiredOption('-o, --output <folder>', 'folder of the run')
    .option('-a, --adapter <folder>', 'PEFT folder to start from')
    .option('-r, --resume', 'go on where the run in the output folder ended', false)
    .action(async (flags: SupervisedFlags, self: Command) => {
      await trainSupervised(contextOf(self), runSettings(contextOf(self).config.training, algorithm), flags);
    });
}

async function trainSupervised(
  { config, output, signal }: CliContext,
  settings: RunSettings,
  flags: SupervisedFlags,
): Promise<void> {
  const home = homeFolder(config);
  const progress = output.progress();
  const model = await ensureModel(config.model.policy, home, {
    onProgress: progress.on,
    onNote: output.note,
    signal,
  }).finally(() => progress.stop());
  const source = model.openWeights();
  const decoder = openDecoderWeights(model, source).config;
  source.close();
  const { vocabSize } = decoder;
  const data = await readExamples(flags.data, { vocabSize, maxTokens: settings.maxSequenceTokens });
  const precision = config.training.precision ?? config.engine.precision;
  const identity = runIdentity(settings, {
    model: model.record.digest,
    precision,
    data: data.digest,
    start: flags.adapter === undefined ? null : readAdapter(flags.adapter, decoder).digest,
  });
  const run = await openRun(flags.output, { identity, resume: flags.resume, onNote: output.note, signal });
  try {
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
      activationBytes: config.training.activationMebibytes * 2 ** 20,
    };
    const trainer = await openTrainer({
      entry: 'training/trainer/decoder-task',
      spec,
      root: run.checkpoints,
      configDigest: run.configDigest,
      from: run.from,
      niceness: config.training.niceness,
    });
    try {
      const view = stepLines(output);
      const outcome = await trainSft(run, trainer, settings, data.examples, {
        signal,
        onStep: view.onStep,
      });
      output.result(
        outcome,
        `trained ${outcome.steps} steps; adapter ${outcome.version.slice(0, 12)} in ${outcome.folder}\nfigures in ${join(run.folder, 'metrics.jsonl')}`,
      );
    } finally {
      await trainer.close();
    }
  } finally {
    await run.release();
  }
}
