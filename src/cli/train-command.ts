import { join } from 'node:path';
import { Command } from 'commander';
import { InvalidInputError, NotFoundError } from '../errors.js';
import {
  ALGORITHMS,
  type AlgorithmName,
  knownFigures,
  PLOTTED_FIGURES,
  type PlottedRun,
  plotRuns,
  readMetrics,
} from '../training/index.js';
import { writeFileAtomic } from '../util/atomic-file.js';
import { contextOf } from './context.js';
import { wholeNumber } from './flag-values.js';
import { bestOfNCommand } from './train-best-of-n.js';
import { trainOnExamples } from './train-examples.js';
import type { TrainFlags } from './train-parts.js';
import { trainOnRollouts } from './train-rollouts.js';
import { warmStartCommand } from './warm-start-command.js';

/** `train ALGORITHM | warm-start | best-of-n | plot`. */
export function trainCommand(): Command {
  const command = new Command('train').description('train the policy, offline; each algorithm is a command');
  command.addCommand(warmStartCommand());
  command.addCommand(bestOfNCommand());
  command.addCommand(plotCommand());
  for (const [name, { summary, supervised }] of Object.entries(ALGORITHMS))
    command.addCommand((supervised ? supervisedCommand : rolloutCommand)(name as AlgorithmName, summary));
  return command;
}

function runCommand(name: string, summary: string, data: string): Command {
  return new Command(name)
    .description(summary)
    .requiredOption('-d, --data <file>', data)
    .requiredOption('-o, --output <folder>', 'folder of the run: checkpoints and figures')
    .option('-a, --adapter <folder>', 'PEFT folder to start from; absent: a fresh adapter')
    .option('-r, --resume', 'go on where the run in the output folder ended', false);
}

interface PlotFlags {
  readonly output: string;
  readonly figures?: string;
  readonly smooth: number;
}

function plotCommand(): Command {
  return new Command('plot')
    .description('draw the curves of runs into one SVG picture')
    .argument('<run...>', 'folders of runs, or metrics.jsonl files')
    .requiredOption('-o, --output <file>', 'SVG file')
    .option('-f, --figures <names>', 'figures, by commas (default: those that the papers plot)')
    .option('--smooth <steps>', 'each point is the mean of so many steps', wholeNumber(1), 1)
    .action(async (paths: string[], flags: PlotFlags, self: Command) => {
      const { output } = contextOf(self);
      const runs: PlottedRun[] = [];
      for (const path of paths) {
        const file = path.endsWith('.jsonl') ? path : join(path, 'metrics.jsonl');
        const rows = await readMetrics(file);
        if (rows.length === 0) throw new NotFoundError(`no figures in ${file}`);
        runs.push({ name: path, rows });
      }
      await writeFileAtomic(flags.output, plotRuns(runs, figuresOf(flags, runs), flags.smooth));
      output.result({ file: flags.output }, `drawn: ${flags.output}`);
    });
}

/** @throws {InvalidInputError} a figure that no run has a number of, or nothing to draw at all */
function figuresOf({ figures }: PlotFlags, runs: readonly PlottedRun[]): readonly string[] {
  const names = figures?.split(',').map((name) => name.trim());
  const known = knownFigures(runs);
  const unknown = (names ?? []).filter((name) => !known.includes(name));
  if (unknown.length > 0 || !(names ?? PLOTTED_FIGURES).some((name) => known.includes(name)))
    throw new InvalidInputError(
      `no run has a number of ${(unknown.length > 0 ? unknown : PLOTTED_FIGURES).join(', ')}; there are: ${known.join(', ')}`,
      'figures',
    );
  return names ?? PLOTTED_FIGURES;
}

interface DataFlags extends TrainFlags {
  readonly data: string;
}

function supervisedCommand(algorithm: AlgorithmName, summary: string): Command {
  return runCommand(algorithm, summary, 'trajectories to learn from (JSONL of records)').action(
    (flags: DataFlags, self: Command) => trainOnExamples(contextOf(self), algorithm, flags),
  );
}

interface RolloutTrainFlags extends DataFlags {
  readonly index?: string;
  readonly retrieval?: string;
}

function rolloutCommand(algorithm: AlgorithmName, summary: string): Command {
  return runCommand(algorithm, summary, 'questions with gold answers (JSONL)')
    .option('--index <name>', 'name or folder of an index (retrieval.index)')
    .option('--retrieval <kind>', 'hnsw, bm25, hybrid or remote (retrieval.kind)')
    .action((flags: RolloutTrainFlags, self: Command) => {
      const settings = { 'retrieval.index': flags.index, 'retrieval.kind': flags.retrieval };
      return trainOnRollouts(contextOf(self, settings), algorithm, flags);
    });
}
