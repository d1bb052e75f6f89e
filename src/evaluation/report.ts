// The tables of an evaluation: per set, over all questions, and the mean of the sets.

import { canonicalJson, sha256Hex } from '../util/digest.js';
import { mean } from '../util/mean.js';
import { DEFAULT_RESAMPLING, type Interval, meanInterval, type ResamplingOptions } from './bootstrap.js';
import { byQuestion, type QuestionResult } from './result.js';
import { markdownSamples, type SampledSet, sampledSet } from './sampled-report.js';
import { decimal, markdownTable } from './table.js';

export interface SetReport {
  readonly name: string;
  readonly questions: number;
  /** Exact match with its 95 % interval over questions; of several samples of a question their mean counts. */
  readonly em: Interval;
  readonly subEm: number;
  readonly f1: number;
  readonly searches: number;
  /** Valid actions over all actions; null where no method of tags ran. */
  readonly validShare: number | null;
  /** Rollouts that ended with an answer. */
  readonly answeredShare: number;
  /** Questions whose gold answer stood in the passages shown; null where none can say. */
  readonly goldShownShare: number | null;
  readonly formatScore: number;
  /** Means of one answer. */
  readonly promptTokens: number;
  readonly injectedTokens: number;
  readonly completionTokens: number;
  readonly seconds: number;
}

export interface EvaluationReport {
  /** Digest of the settings; stands beside every number. */
  readonly digest: string;
  readonly settings: Readonly<Record<string, unknown>>;
  /** Digest of the questions and gold answers behind the numbers, whatever their order. */
  readonly questionsDigest: string;
  readonly sets: readonly SetReport[];
  readonly overall: SetReport;
  /** Mean of the sets' exact match, each set counting the same (the papers' average). */
  readonly averageEm: number;
  /** pass@k and maj@k of each set, `overall` the last; absent where questions were answered once, greedily. */
  readonly sampled?: readonly SampledSet[];
}

export function reportOf(
  results: readonly QuestionResult[],
  about: Pick<EvaluationReport, 'digest' | 'settings'>,
  resampling: ResamplingOptions = DEFAULT_RESAMPLING,
): EvaluationReport {
  const groups = [...groupBySet(results)];
  const sets = groups.map(([name, items]) => setReport(name, items, resampling));
  const all = [...groups, ['overall', results] as const];
  const isSampled = results.some(({ sample }) => sample !== undefined);
  return {
    ...about,
    questionsDigest: digestOfQuestions(results),
    sets,
    overall: setReport('overall', results, resampling),
    averageEm: mean(sets.map(({ em }) => em.mean)),
    ...(isSampled ? { sampled: all.map(([name, items]) => sampledSet(name, items, resampling)) } : {}),
  };
}

function digestOfQuestions(results: readonly QuestionResult[]): string {
  const asked = new Map(results.map(({ id, questionDigest }) => [id, questionDigest ?? null]));
  return sha256Hex(canonicalJson([...asked].sort(([a], [b]) => (a < b ? -1 : 1))));
}

/** By name of the set. */
function groupBySet(results: readonly QuestionResult[]): Map<string, QuestionResult[]> {
  const groups = new Map<string, QuestionResult[]>();
  for (const result of results) {
    const group = groups.get(result.dataset);
    if (group === undefined) groups.set(result.dataset, [result]);
    else group.push(result);
  }
  return new Map([...groups].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function setReport(
  name: string,
  results: readonly QuestionResult[],
  resampling: ResamplingOptions,
): SetReport {
  const average = (value: (result: QuestionResult) => number): number => mean(results.map(value));
  const sum = (value: (result: QuestionResult) => number): number =>
    results.reduce((total, result) => total + value(result), 0);
  const actions = sum(({ validActions, invalidActions }) => validActions + invalidActions);
  const questions = [...byQuestion(results).values()];
  const shown = results.flatMap(({ goldShown }) => (goldShown === null ? [] : [goldShown ? 1 : 0]));
  return {
    name,
    questions: questions.length,
    em: meanInterval(
      questions.map((answers) => mean(answers.map(({ em }) => em))),
      resampling,
    ),
    subEm: average(({ subEm }) => subEm),
    f1: average(({ f1 }) => f1),
    searches: average(({ searches }) => searches),
    validShare: actions === 0 ? null : sum(({ validActions }) => validActions) / actions,
    answeredShare: average(({ stop }) => (stop === 'answer' ? 1 : 0)),
    goldShownShare: shown.length === 0 ? null : mean(shown),
    formatScore: average(({ formatScore }) => formatScore),
    promptTokens: average(({ promptTokens }) => promptTokens),
    injectedTokens: average(({ injectedTokens }) => injectedTokens),
    completionTokens: average(({ completionTokens }) => completionTokens),
    seconds: average(({ seconds }) => seconds),
  };
}

const COLUMNS: readonly (readonly [string, (set: SetReport) => string])[] = [
  ['set', ({ name }) => name],
  ['questions', ({ questions }) => String(questions)],
  ['EM', ({ em }) => decimal(em.mean)],
  ['95 % interval', ({ em }) => `${decimal(em.low)} to ${decimal(em.high)}`],
  ['subEM', ({ subEm }) => decimal(subEm)],
  ['F1', ({ f1 }) => decimal(f1)],
  ['searches', ({ searches }) => searches.toFixed(2)],
  ['valid actions', ({ validShare }) => share(validShare)],
  ['answered', ({ answeredShare }) => decimal(answeredShare)],
  ['gold shown', ({ goldShownShare }) => share(goldShownShare)],
  ['tokens in', ({ promptTokens, injectedTokens }) => (promptTokens + injectedTokens).toFixed(0)],
  ['tokens out', ({ completionTokens }) => completionTokens.toFixed(0)],
  ['seconds', ({ seconds }) => seconds.toFixed(1)],
];

const share = (value: number | null): string => (value === null ? '-' : decimal(value));

/** The report as a table in Markdown, with the digests of its settings and questions below. */
export function markdownReport(report: EvaluationReport): string {
  const rows = [...report.sets, report.overall].map((set) => COLUMNS.map(([, cell]) => cell(set)));
  return [
    ...markdownTable(
      COLUMNS.map(([name]) => name),
      rows,
    ),
    '',
    `Mean of the sets' EM: ${decimal(report.averageEm)}. Settings ${report.digest.slice(0, 16)}, questions ${report.questionsDigest.slice(0, 16)}.`,
    '',
    ...(report.sampled === undefined ? [] : markdownSamples(report.sampled)),
  ].join('\n');
}
