// Two evaluations of the same questions side by side: is one better than the other?

import { InvalidInputError } from '../errors.js';
import { mean } from '../util/mean.js';
import {
  DEFAULT_RESAMPLING,
  type PairedDifference,
  pairedDifference,
  type ResamplingOptions,
} from './bootstrap.js';
import { type McNemar, mcnemar } from './mcnemar.js';
import { answerKey, byQuestion, type QuestionResult } from './result.js';
import { markdownTable } from './table.js';

export interface SetComparison {
  readonly name: string;
  /** Questions that both answered. */
  readonly questions: number;
  readonly firstEm: number;
  readonly secondEm: number;
  /** First minus second; of several samples of a question their mean counts. */
  readonly difference: PairedDifference;
  /** null where a question was answered several times: the test is one of right against wrong. */
  readonly mcnemar: McNemar | null;
}

export interface Comparison {
  readonly sets: readonly SetComparison[];
  readonly overall: SetComparison;
  /** Questions that only one of the two answered, or that they know in two wordings: they are left out. */
  readonly unpaired: number;
}

/** A question's answers taken together. */
interface Answered {
  readonly dataset: string;
  readonly questionDigest: string | undefined;
  readonly samples: number;
  /** Mean over the samples. */
  readonly em: number;
}

type Pair = readonly [Answered, Answered];

/** @throws {InvalidInputError} no question is in both */
export function compareResults(
  first: readonly QuestionResult[],
  second: readonly QuestionResult[],
  resampling: ResamplingOptions = DEFAULT_RESAMPLING,
): Comparison {
  const [ours, others] = [answeredById(first), answeredById(second)];
  const pairs = [...ours].flatMap(([id, result]): Pair[] => {
    const other = others.get(id);
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

/** Of a sample that was asked again the last result counts; of a question that has changed, those of its last form. */
function answeredById(results: readonly QuestionResult[]): Map<string, Answered> {
  const last = [...new Map(results.map((result) => [answerKey(result), result])).values()];
  const forms = new Map(results.map((result) => [result.id, result]));
  const answered = new Map<string, Answered>();
  for (const [id, all] of byQuestion(last)) {
    const { dataset, questionDigest } = forms.get(id) as QuestionResult;
    const samples = all.filter((result) => result.questionDigest === questionDigest);
    const em = mean(samples.map((result) => result.em));
    answered.set(id, { dataset, questionDigest, samples: samples.length, em });
  }
  return answered;
}

/** Results of earlier versions do not tell; their ids have to do. */
const sameQuestion = (a: Answered, b: Answered): boolean =>
  a.questionDigest === undefined || b.questionDigest === undefined || a.questionDigest === b.questionDigest;

function compareSet(name: string, pairs: readonly Pair[], resampling: ResamplingOptions): SetComparison {
  const first = pairs.map(([{ em }]) => em);
  const second = pairs.map(([, { em }]) => em);
  const isSingle = pairs.every(([x, y]) => x.samples === 1 && y.samples === 1);
  const only = (a: number, b: number): number => pairs.filter(([x, y]) => x.em === a && y.em === b).length;
  return {
    name,
    questions: pairs.length,
    firstEm: mean(first),
    secondEm: mean(second),
    difference: pairedDifference(first, second, resampling),
    mcnemar: isSingle ? mcnemar(only(1, 0), only(0, 1)) : null,
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
      test === null ? '-' : `${test.onlyFirstRight} : ${test.onlySecondRight}`,
      test === null ? '-' : test.exactP.toPrecision(2),
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
