import { Command } from 'commander';
import { type Config, homeFolder } from '../config/index.js';
import type { EngineInfo } from '../engine/index.js';
import { ConfigError } from '../errors.js';
import {
  makeRivals,
  makeWarmStart,
  readWarmStart,
  type TeachingHouse,
  transcriptOf,
  type WarmStartOptions,
  type WarmStartSummary,
} from '../loop/index.js';
import { ensureModel, preparePrecision } from '../model/index.js';
import { inlineEncoding, loadPrompts } from '../rollout/index.js';
import { createTokenizer } from '../tokenizer/index.js';
import { openIndex, type StartOptions, searchWidth } from './application.js';
import { type CliContext, contextOf } from './context.js';
import { counted } from './counted.js';
import { oneOf, wholeNumber } from './flag-values.js';
import type { Output } from './output.js';
import { withProgress } from './progress-rate.js';
import { trainingQuestions } from './questions.js';
import { addRolloutFlags, questionFile, type RolloutFlags, settingsOf } from './rollout-flags.js';

const METHODS = ['search-r1', 'rag', 'direct'] as const;
type TaughtMethod = (typeof METHODS)[number];

interface WarmStartFlags extends RolloutFlags {
  readonly output: string;
  readonly count: number;
  readonly method: TaughtMethod;
  readonly from?: string;
  readonly show: number;
}

/** Tokens around the passages of an observation. */
const OBSERVATION_FRAME = 16;

/** Small sizes where the line names no others: settings of the same names are for serving. */
function withSmallSizes(flags: WarmStartFlags): RolloutFlags {
  const passageTokens = flags.passageTokens ?? 80;
  return {
    ...flags,
    budget: flags.budget ?? 3,
    turnTokens: flags.turnTokens ?? 128,
    passageTokens,
    observationTokens: flags.observationTokens ?? passageTokens * (flags.topK ?? 3) + OBSERVATION_FRAME,
  };
}

/** Makes trajectories to learn from by rule, through real rollouts; a run that was stopped goes on. */
export function warmStartCommand(): Command {
  return addRolloutFlags(new Command('warm-start'))
    .description(
      'make trajectories for supervised training from questions of the training part; sizes that are not given are 3 turns, 128 tokens a turn, 80 a passage',
    )
    .requiredOption('-o, --output <file>', 'file of trajectories (JSONL); an unfinished one is gone on with')
    .option('-n, --count <number>', 'trajectories', wholeNumber(1), 900)
    .option('-m, --method <name>', METHODS.join(', '), oneOf(METHODS), 'search-r1')
    .option('--from <file>', 'with rag or direct: trajectories of search-r1 whose questions are taken')
    .option('--show <number>', 'print so many of them as text', wholeNumber(0), 0)
    .action(async (flags: WarmStartFlags, self: Command) => {
      const context = contextOf(self, settingsOf(withSmallSizes(flags)));
      const { signal, output } = context;
      const summary = await withProgress(context, (onProgress) =>
        make(flags, context, { onProgress, onNote: output.note, signal }),
      );
      output.result(summary, summaryText(summary, flags.output));
    });
}

type Summary = WarmStartSummary & {
  /** Questions of the validation part that were left out. */
  readonly heldOut: number;
};

function summaryText({ trajectories, kinds, left, heldOut, tokens, trainedTokens }: Summary, file: string) {
  const rows = (table: WarmStartSummary['kinds']): string[] =>
    Object.entries(table).map(([set, counts]) => {
      const parts = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
      return `  ${set}: ${parts.join(', ')}`;
    });
  return [
    `${counted(trajectories, 'trajectory', 'trajectories')} in ${file}: ${counted(tokens, 'token')}, ${trainedTokens} of them to learn from`,
    ...rows(kinds),
    ...(Object.keys(left).length === 0 ? [] : ['questions that gave none:', ...rows(left)]),
    ...(heldOut === 0 ? [] : [`left out: ${counted(heldOut, 'question')} of the validation part`]),
  ].join('\n');
}

async function make(
  flags: WarmStartFlags,
  { config, output, signal }: CliContext,
  start: StartOptions,
): Promise<Summary> {
  const { info, tokenizer } = await policyOf(config, start);
  const retriever = flags.method === 'direct' ? null : await openIndex(config, start);
  try {
    const house: TeachingHouse = {
      info,
      tokenizer,
      encoding: inlineEncoding(tokenizer),
      retriever,
      searchWidth: searchWidth(config, retriever),
      config: config.rollout,
      prompts: loadPrompts(config.rollout),
    };
    const { onProgress } = start;
    const common = {
      house,
      output: flags.output,
      topK: config.rollout.topK,
      signal,
      onNote: output.note,
      ...(onProgress && { onProgress }),
    };
    const { method, count } = flags;
    const summary =
      method === 'search-r1'
        ? await fromQuestions(questionFile(config), output, { ...common, count })
        : { ...(await makeRivals({ ...common, count, method, from: await fromFile(flags) })), heldOut: 0 };
    for (const line of (await readWarmStart(flags.output)).slice(0, flags.show))
      output.note(transcriptOf(line, tokenizer));
    return summary;
  } finally {
    await retriever?.close();
  }
}

async function fromQuestions(
  file: string,
  output: Output,
  options: Omit<WarmStartOptions, 'questions'>,
): Promise<Summary> {
  const { all, taken } = await trainingQuestions(file, output.note);
  const summary = await makeWarmStart({ ...options, questions: taken });
  return { ...summary, heldOut: all.length - taken.length };
}

async function fromFile(flags: WarmStartFlags) {
  if (flags.from === undefined)
    throw new ConfigError(`method ${flags.method} needs --from FILE, a file made with method search-r1`);
  return readWarmStart(flags.from);
}

/** Tokenizer and facts of the policy model; nothing is sampled, so no engine is started. */
async function policyOf(config: Config, options: StartOptions) {
  const home = homeFolder(config);
  const model = await ensureModel(config.model.policy, home, options);
  const graphs = await preparePrecision(home, model, config.engine.precision, options);
  const info: EngineInfo = {
    modelId: model.record.id,
    modelDigest: graphs.digest,
    precision: graphs.precision,
    vocabSize: graphs.config.vocabSize,
    maxSequenceTokens: Math.min(config.engine.maxSequenceTokens, graphs.maxPositions),
    eosTokenIds: graphs.config.eosTokenIds,
    maxSequences: 1,
    fingerprint: 'teacher',
  };
  return { info, tokenizer: createTokenizer(await model.readTokenizer()) };
}
