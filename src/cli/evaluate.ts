import { basename, join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import type { Config } from '../config/index.js';
import type { AdapterInfo, Engine } from '../engine/index.js';
import { NotFoundError } from '../errors.js';
import {
  chosenTranscripts,
  compareResults,
  type EvaluationReport,
  evaluate,
  markdownComparison,
  markdownReport,
  markdownTranscripts,
  PARTS,
  type Part,
  type Question,
  readQuestions,
  readResults,
  readTranscripts,
  reportOf,
  sampleOrder,
  selectPart,
  settingsDigest,
} from '../evaluation/index.js';
import { adapterFor, loadPrompts, METHODS, type MethodName } from '../rollout/index.js';
import { writeFileAtomic } from '../util/atomic-file.js';
import { openIndex, openPolicyModel, openRunner, type StartOptions } from './application.js';
import { type CliContext, contextOf } from './context.js';
import { wholeNumber } from './numbers.js';
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
}

/** Measures a policy on questions with gold answers, greedy and without forced answers; and `evaluate compare A B`. */
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
  const questions = await chosenQuestions(flags, context);
  const progress = output.progress();
  try {
    const start = { onProgress: progress.on, onNote: output.note, signal };
    const report = await run(questions, flags, config, start);
    if (flags.output !== undefined) await writeReport(flags.output, report);
    return report;
  } finally {
    progress.stop();
  }
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

async function run(
  questions: readonly Question[],
  flags: EvaluateFlags,
  config: Config,
  start: StartOptions,
): Promise<EvaluationReport> {
  const policy = await openPolicyModel(config, start);
  try {
    const adapter =
      flags.adapter === undefined
        ? adapterFor(flags.method, config.model.liveMethods)
        : await adapterOf(flags.adapter, policy.engine);
    const retriever = METHODS[flags.method].searches ? await openIndex(config, start) : null;
    try {
      const { modelId, modelDigest, fingerprint } = policy.engine.info;
      const settings = {
        method: flags.method,
        model: modelId,
        modelDigest,
        fingerprint,
        adapter: adapter === null ? null : (adapter?.version ?? policy.engine.liveAdapter?.version ?? null),
        index: retriever?.snapshotId ?? null,
        retriever: retriever?.info.kind ?? null,
        rollout: config.rollout,
        prompt: METHODS[flags.method].promptDigest(loadPrompts(config.rollout)),
      };
      const results = await evaluate({
        runner: openRunner(config, policy, retriever),
        tokenizer: policy.encoding.tokenizer,
        method: flags.method,
        questions,
        concurrency: config.evaluation.concurrency,
        settings,
        ...(adapter === undefined ? {} : { adapter: adapter?.name ?? null }),
        ...(flags.output === undefined ? {} : { output: flags.output }),
        ...(start.onProgress === undefined ? {} : { onProgress: start.onProgress }),
        ...(start.onNote === undefined ? {} : { onNote: start.onNote }),
        ...(start.signal === undefined ? {} : { signal: start.signal }),
      });
      return reportOf(results, { digest: settingsDigest(settings), settings }, config.evaluation);
    } finally {
      await retriever?.close();
    }
  } finally {
    await policy.close();
  }
}

const BASE = 'base';

/** @param adapter a folder; null is the plain model */
async function adapterOf(adapter: string, engine: Engine): Promise<AdapterInfo | null> {
  if (adapter === BASE) return null;
  return engine.loadAdapter('evaluated', adapter, { replace: true });
}

async function writeReport(folder: string, report: EvaluationReport): Promise<void> {
  await writeFileAtomic(join(folder, 'report.json'), `${JSON.stringify(report, null, 2)}\n`);
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

const oneOf =
  <T extends string>(values: readonly T[]) =>
  (text: string): T => {
    if (!(values as readonly string[]).includes(text))
      throw new InvalidArgumentError(`expected one of ${values.join(', ')}`);
    return text as T;
  };

const methodName = oneOf(Object.keys(METHODS) as MethodName[]);
