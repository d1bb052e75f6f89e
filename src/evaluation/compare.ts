// Two evaluations of the same questions side by side: is one better than the other?

import { InvalidInputError } from '../errors.js';
import {
  DEFAULT_RESAMPLING,
  mean,
  type PairedDifference,
  pairedDifference,
  type ResamplingOptions,
} from './bootstrap.js';
import { type McNemar, mcnemar } from './mcnemar.js';
import { markdownTable } from './report.js';
import type { QuestionResult } from './result.js';

export interface SetComparison {
  readonly name: string;
  /** Questions that both answered. */
  readonly questions: number;
  readonly firstEm: number;
  readonly secondEm: number;
  /** First minus second. */
  readonly difference: PairedDifference;
  readonly mcnemar: McNemar;
}

export interface Comparison {
  readonly sets: readonly SetComparison[];
  readonly overall: SetComparison;
  /** Questions that only one of the two answered, or that they know in two wordings: they are left out. */
  readonly unpaired: number;
}

type Pair = readonly [QuestionResult, QuestionResult];

/** @throws {InvalidInputError} no question is in both */
export function compareResults(
  first: readonly QuestionResult[],
  second: readonly QuestionResult[],
  resampling: ResamplingOptions = DEFAULT_RESAMPLING,
): Comparison {
  const [ours, others] = [byId(first), byId(second)];
  const pairs = [...ours.values()].flatMap((result): Pair[] => {
    const other = others.get(result.id);
    return other === undefined || !sameQuestion(result, other) ? [] : [[result, other]];
  });
  if (pairs.length === 0) throw new InvalidInputError('the two evaluations have no question in common');
  const names = [...new Set(pairs.map(([{ dataset }]) => dataset))].sort();
  return {
    sets: names.map((name) =>
      compareSet(
        name,
        pairs.filter(([{ dataset }]) => dataset === name),
        resampling,
      ),
    ),
    overall: compareSet('overall', pairs, resampling),
    unpaired: ours.size + others.size - 2 * pairs.length,
  };
}

/** A question counts once, with its last result. */
const byId = (results: readonly QuestionResult[]): Map<string, QuestionResult> =>
  new Map(results.map((result) => [result.id, result]));

/** Results of earlier versions do not tell; their ids have to do. */
const sameQuestion = (a: QuestionResult, b: QuestionResult): boolean =>
  a.questionDigest === undefined || b.questionDigest === undefined || a.questionDigest === b.questionDigest;

function compareSet(name: string, pairs: readonly Pair[], resampling: ResamplingOptions): SetComparison {
  const first = pairs.map(([{ em }]) => em);
  const second = pairs.map(([, { em }]) => em);
  const only = (a: number, b: number): number => pairs.filter(([x, y]) => x.em === a && y.em === b).length;
  return {
    name,
    questions: pairs.length,
    firstEm: mean(first),
    secondEm: mean(second),
    difference: pairedDifference(first, second, resampling),
    mcnemar: mcnemar(only(1, 0), only(0, 1)),
  };
}

export function markdownComparison(comparison: Comparison, names: readonly [string, string]): string {
  const rows = [...comparison.sets, comparison.overall].map(
    ({ name, questions, firstEm, secondEm, difference, mcnemar: test }) => [
      name,
      String(questions),
      firstEm.toFixed(3),
      secondEm.toFixed(3),
      signed(difference.mean),
      `${signed(difference.low)} to ${signed(difference.high)}`,
      difference.firstBetter.toFixed(3),
      `${test.onlyFirstRight} : ${test.onlySecondRight}`,
      test.exactP.toPrecision(2),
    ],
  );
  const head = [
    'set',
    'questions',
    `EM ${names[0]}`,
    `EM ${names[1]}`,
    'difference',
    '95 % interval',
    'share better',
    'only one right',
    'McNemar p',
  ];
  const left = comparison.unpaired > 0 ? [`${comparison.unpaired} results have no partner.`, ''] : [];
  return [...markdownTable(head, rows), '', ...left].join('\n');
}

const signed = (value: number): string => `${value < 0 ? '' : '+'}${value.toFixed(3)}`;
