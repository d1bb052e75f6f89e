// What several samples of each question say: pass@k and maj@k with their uncertainty, and how pass@k grows with k.

import { type Interval, meanInterval, type ResamplingOptions } from './bootstrap.js';
import { fitPowerLaw, type PowerLaw } from './power-law.js';
import { expectedMajAtK, passAtK } from './repeated.js';
import { byQuestion, type QuestionResult } from './result.js';
import { decimal, markdownTable } from './table.js';

export interface AtK {
  readonly k: number;
  /** Means over questions with their 95 % intervals. */
  readonly pass: Interval;
  readonly maj: Interval;
}

export interface SampledSet {
  readonly name: string;
  readonly questions: number;
  /** Of each question; of questions with different numbers of them the fewest. */
  readonly samples: number;
  /** For k = 1, 2, 4 and so on, and for all samples. */
  readonly atK: readonly AtK[];
  /** log pass@k = a k^b; null with fewer than three k, or where a pass@k is 0 or 1. */
  readonly fit: PowerLaw | null;
}

const FEWEST_POINTS = 3;

/** @param results  samples of one or more questions */
export function sampledSet(
  name: string,
  results: readonly QuestionResult[],
  resampling: ResamplingOptions,
): SampledSet {
  const questions = [...byQuestion(results).values()];
  const samples = Math.min(...questions.map(({ length }) => length));
  const atK = numbersUpTo(samples).map((k): AtK => {
    const pass = questions.map((answers) => passAtK(answers.length, rightOf(answers), k));
    const maj = questions.map((answers) => expectedMajAtK(answers, k));
    return { k, pass: meanInterval(pass, resampling), maj: meanInterval(maj, resampling) };
  });
  return { name, questions: questions.length, samples, atK, fit: fitOf(atK) };
}

const rightOf = (answers: readonly QuestionResult[]): number => answers.filter(({ em }) => em === 1).length;

function numbersUpTo(samples: number): number[] {
  const numbers: number[] = [];
  for (let k = 1; k < samples; k *= 2) numbers.push(k);
  return [...numbers, samples];
}

function fitOf(atK: readonly AtK[]): PowerLaw | null {
  const coverage = atK.map(({ pass }) => pass.mean);
  if (atK.length < FEWEST_POINTS || !coverage.every((share) => share > 0 && share < 1)) return null;
  return fitPowerLaw(
    atK.map(({ k }) => k),
    coverage,
  );
}

/** A table of a row for each set and k, and the fits below. */
export function markdownSamples(sets: readonly SampledSet[]): string[] {
  const rows = sets.flatMap(({ name, atK }) =>
    atK.map(({ k, pass, maj }) => [
      name,
      String(k),
      decimal(pass.mean),
      intervalText(pass),
      decimal(maj.mean),
      intervalText(maj),
    ]),
  );
  return [
    ...markdownTable(['set', 'k', 'pass@k', '95 % interval', 'maj@k', '95 % interval'], rows),
    '',
    ...sets.flatMap(({ name, fit }) => (fit === null ? [] : [fitText(name, fit), ''])),
  ];
}

const intervalText = ({ low, high }: Interval): string => `${decimal(low)} to ${decimal(high)}`;

function fitText(name: string, { a, b, errors, rmse }: PowerLaw): string {
  const [ofA, ofB] = errors;
  const withError = (value: number, error: number): string =>
    `${decimal(value)} (standard error ${decimal(error)})`;
  return `${name}: log pass@k = a k^b with a = ${withError(a, ofA)}, b = ${withError(b, ofB)}; residual of log pass@k ${decimal(rmse)}.`;
}
