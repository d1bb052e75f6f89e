import { basename, join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { ConfigError, NotFoundError } from '../errors.js';
import {
  chosenTranscripts,
  compareResults,
  type EvaluationReport,
  markdownComparison,
  markdownReport,
  markdownTranscripts,
  PARTS,
  type Part,
  type Question,
  readQuestions,
  readResults,
  readTranscripts,
  sampleOrder,
  selectPart,
} from '../evaluation/index.js';
import { METHODS, type MethodName } from '../rollout/index.js';
import { writeFileAtomic } from '../util/atomic-file.js';
import { writeJsonFile } from '../util/json-file.js';
import { type CliContext, contextOf } from './context.js';
import { runEvaluation, type Sampling } from './evaluation-run.js';
import { oneOf, wholeNumber } from './flag-values.js';
import { takenText } from './questions.js';
import { addRolloutFlags, questionFile, type RolloutFlags, settingsOf } from './rollout-flags.js';

interface EvaluateFlags extends RolloutFlags {
  readonly split: Part;
  readonly method: MethodName;
  readonly adapter?: string;
  readonly limit?: number;
  readonly sets?: string;
  readonly concurrency?: number;
  readonly output?: string;
  readonly samples?: number;
  readonly temperature?: number;
}

/**
 * Measures a policy on questions with gold answers, greedy or by several samples of each, without forced answers; and
 * `evaluate compare A B`.
 */
export function evaluateCommand(): Command {
  return addRolloutFlags(new Command('evaluate'))
    .description('measure exact match on questions with gold answers; a run that was stopped goes on')
    .option('--split <part>', PARTS.join(', '), oneOf(PARTS), 'validation')
    .option('-m, --method <name>', Object.keys(METHODS).join(', '), methodName, 'search-r1')
    .option(
      '-a, --adapter <folder>',
      'PEFT folder; absent: what `searchloop` answers with; "base": the plain model',
    )
    .option('-n, --limit <number>', 'so many questions, a fair sample', wholeNumber(1))
    .option('--sets <names>', 'only these sets, with commas between')
    .option('--concurrency <number>', 'questions answered at once (evaluation.concurrency)', wholeNumber(1))
    .option(
      '--samples <number>',
      'so many sampled answers to each question: pass@k and maj@k',
      wholeNumber(1),
    )
    .option('-t, --temperature <number>', 'of the samples (default: 1)', temperature)
    .option('-o, --output <folder>', 'results, settings and report; an unfinished run there is gone on with')
    .action(async (flags: EvaluateFlags, self: Command) => {
      const context = contextOf(self, {
        ...settingsOf(flags),
        'evaluation.concurrency': flags.concurrency,
      });
      const report = await measure(flags, context);
      context.output.result(report, markdownReport(report));
    })
    .addCommand(compareCommand())
    .addCommand(transcriptsCommand());
}

async function measure(flags: EvaluateFlags, context: CliContext): Promise<EvaluationReport> {
  const { config, output, signal } = context;
  const sampling = samplingOf(flags);
  const questions = await chosenQuestions(flags, context);
  const progress = output.progress();
  try {
    const start = { onProgress: progress.on, onNote: output.note, signal };
    const report = await runEvaluation(questions, { ...flags, sampling }, config, start);
    if (flags.output !== undefined) await writeReport(flags.output, report);
    return report;
  } finally {
    progress.stop();
  }
}

/** @throws {ConfigError} flags of which one makes the other senseless */
function samplingOf({ samples, temperature }: EvaluateFlags): Sampling | null {
  if (samples === undefined) {
    if (temperature === undefined) return null;
    throw new ConfigError('--temperature: without --samples answers are greedy; give --samples too');
  }
  if (temperature === 0 && samples > 1)
    throw new ConfigError(
      `--samples ${samples} --temperature 0: greedy answers to a question are all the same; expected a temperature above 0, or no --samples`,
    );
  return { samples, temperature: temperature ?? 1 };
}

async function chosenQuestions(
  { sets, split, limit }: EvaluateFlags,
  { config, output }: CliContext,
): Promise<Question[]> {
  const file = questionFile(config);
  const all = await readQuestions(file);
  const names = sets?.split(',');
  const chosen = selectPart(all, split).filter(
    ({ dataset }) => names === undefined || names.includes(dataset),
  );
  const taken = sampleOrder(chosen).slice(0, limit ?? chosen.length);
  const narrowed = [
    ...(sets === undefined ? [] : [`--sets ${sets}`]),
    ...(limit === undefined ? [] : [`--limit ${limit}`]),
  ];
  const text = takenText(file, { all, taken }, split, narrowed);
  if (taken.length === 0) throw new NotFoundError(`no question to evaluate: ${text}`);
  output.note(text);
  return taken;
}

async function writeReport(folder: string, report: EvaluationReport): Promise<void> {
  await writeJsonFile(join(folder, 'report.json'), report);
  await writeFileAtomic(join(folder, 'report.md'), markdownReport(report));
}

function compareCommand(): Command {
  return new Command('compare')
    .description('compare two finished evaluations question by question')
    .argument('<first>', 'folder of an evaluation')
    .argument('<second>', 'folder of another one')
    .action(async (first: string, second: string, _flags: unknown, self: Command) => {
      const { config, output } = contextOf(self);
      const [a, b] = await Promise.all([resultsIn(first), resultsIn(second)]);
      const comparison = compareResults(a, b, config.evaluation);
      output.result(comparison, markdownComparison(comparison, [basename(first), basename(second)]));
    });
}

function transcriptsCommand(): Command {
  return new Command('transcripts')
    .description('print rollouts of an evaluation, right and wrong ones in turn; the same ones every time')
    .argument('<folder>', 'folder of an evaluation')
    .option('--count <number>', 'how many', wholeNumber(1), 10)
    .action(async (folder: string, flags: { readonly count: number }, self: Command) => {
      const { output } = contextOf(self);
      const transcripts = chosenTranscripts(await readTranscripts(folder), flags.count);
      output.result(transcripts, markdownTranscripts(transcripts));
    });
}

async function resultsIn(folder: string) {
  const results = await readResults(folder);
  if (results.length === 0) throw new NotFoundError(`no results of an evaluation in ${folder}`);
  return results;
}

function temperature(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0 && value <= 2))
    throw new InvalidArgumentError('expected a number from 0 to 2');
  return value;
}

const methodName = oneOf(Object.keys(METHODS) as MethodName[]);
