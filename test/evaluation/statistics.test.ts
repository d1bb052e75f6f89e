// Against stored values (scipy, numpy), and what must hold for any input.

import fc from 'fast-check';
import { meanInterval, pairedDifference } from '../../src/evaluation/index.js';
import { mcnemar } from '../../src/evaluation/mcnemar.js';
import { fitLogLogLine, fitPowerLaw } from '../../src/evaluation/power-law.js';
import { expectedMajAtK, passAtK } from '../../src/evaluation/repeated.js';
import { exactMatch } from '../../src/reward/index.js';
import { readJson } from '../support/fixtures.js';

interface Stored {
  passAtK: { n: number; c: number; k: number; passAtK: number }[];
  majority: { answers: (string | null)[]; gold: string; scoreTiesShared: number }[];
  expectedMajAtK: { pool: string[]; gold: string; k: number; expectedMajAtKTiesShared: number }[];
  powerLaw: {
    k: number[];
    coverage: number[];
    leastSquaresOnLogC: { a: number; b: number; standardErrors: [number, number]; rmseOfLogC: number };
    lineOnLogLog: { a: number; b: number; r2: number };
  }[];
  mcnemar: {
    onlyFirstRight: number;
    onlySecondRight: number;
    exactTwoSidedP: number;
    chiSquareContinuity: number;
    chiSquareContinuityP: number;
    midP: number;
  }[];
  bootstrap: {
    first: string;
    second: string;
    mean: number;
    meanInterval95: [number, number];
    difference: number;
    differenceInterval95: [number, number];
    shareOfResamplesWhereFirstIsBetter: number;
    tolerance: number;
  }[];
}

const stored = readJson('losses', 'evaluation.json') as Stored;
const near = (value: number, expected: number, tolerance = 1e-8): void =>
  expect(Math.abs(value - expected)).toBeLessThanOrEqual(tolerance * Math.max(1, Math.abs(expected)));

test('pass@k', () => {
  for (const { n, c, k, passAtK: expected } of stored.passAtK) near(passAtK(n, c, k), expected);
  expect(() => passAtK(3, 1, 4)).toThrow(/from 1 to 3/);
});

const graded = (pool: readonly (string | null)[], gold: string) =>
  pool.map((answer) => ({ answer, em: answer === null ? (0 as const) : exactMatch(answer, [gold]) }));

test('expected maj@k, ties shared', () => {
  for (const { pool, gold, k, expectedMajAtKTiesShared } of stored.expectedMajAtK)
    near(expectedMajAtK(graded(pool, gold), k), expectedMajAtKTiesShared);
  // Of all answers there is one draw: the vote itself.
  for (const { answers, gold, scoreTiesShared } of stored.majority.filter(
    ({ answers: { length } }) => length,
  ))
    near(expectedMajAtK(graded(answers, gold), answers.length), scoreTiesShared);
});

test('maj@k counts every draw: it is the mean over all subsets', () => {
  const answer = fc.constantFrom('x', 'y', 'z', null);
  fc.assert(
    fc.property(fc.array(answer, { minLength: 1, maxLength: 6 }), fc.nat(5), (pool, more) => {
      const k = 1 + (more % pool.length);
      const subsets = Array.from({ length: 2 ** pool.length }, (_, mask) =>
        pool.filter((_item, i) => (mask >> i) & 1),
      ).filter((subset) => subset.length === k);
      const score = (subset: (string | null)[]): number => {
        const votes = new Map<string, number>();
        for (const item of subset) if (item !== null) votes.set(item, (votes.get(item) ?? 0) + 1);
        const most = Math.max(...votes.values());
        const winners = [...votes].filter(([, count]) => count === most).map(([item]) => item);
        return winners.length === 0 ? 0 : winners.filter((item) => item === 'x').length / winners.length;
      };
      const expected = subsets.reduce((sum, subset) => sum + score(subset), 0) / subsets.length;
      near(expectedMajAtK(graded(pool, 'x'), k), expected, 1e-9);
    }),
    { numRuns: 60 },
  );
});

test('power law: least squares with standard errors, and the line in log-log', () => {
  for (const { k, coverage, leastSquaresOnLogC: fit, lineOnLogLog } of stored.powerLaw) {
    const got = fitPowerLaw(k, coverage);
    near(got.a, fit.a, 1e-6);
    near(got.b, fit.b, 1e-6);
    near(got.errors[0], fit.standardErrors[0], 1e-6);
    near(got.errors[1], fit.standardErrors[1], 1e-6);
    near(got.rmse, fit.rmseOfLogC, 1e-6);
    const line = fitLogLogLine(k, coverage);
    near(line.a, lineOnLogLog.a, 1e-6);
    near(line.b, lineOnLogLog.b, 1e-6);
    near(line.r2, lineOnLogLog.r2, 1e-6);
  }
  expect(() => fitPowerLaw([1, 2, 4], [0.1, 1, 0.5])).toThrow(/coverage between 0 and 1/);
});

test("McNemar's test", () => {
  for (const item of stored.mcnemar) {
    const got = mcnemar(item.onlyFirstRight, item.onlySecondRight);
    near(got.exactP, item.exactTwoSidedP);
    near(got.midP, item.midP);
    near(got.chiSquare, item.chiSquareContinuity);
    near(got.chiSquareP, item.chiSquareContinuityP);
  }
});

const bits = (text: string): number[] => [...text].map(Number);

test('bootstrap intervals lie where many resamples put them', () => {
  for (const item of stored.bootstrap) {
    const [first, second] = [bits(item.first), bits(item.second)];
    const one = meanInterval(first);
    near(one.mean, item.mean, 1e-12);
    near(one.low, item.meanInterval95[0], item.tolerance);
    near(one.high, item.meanInterval95[1], item.tolerance);
    const paired = pairedDifference(first, second);
    near(paired.mean, item.difference, 1e-12);
    near(paired.low, item.differenceInterval95[0], item.tolerance * 1.5);
    near(paired.high, item.differenceInterval95[1], item.tolerance * 1.5);
    near(paired.firstBetter, item.shareOfResamplesWhereFirstIsBetter, 0.04);
  }
});

test('a seed gives the same interval again, another seed another', () => {
  const values = Array.from({ length: 50 }, (_, i) => Math.sqrt(i));
  expect(meanInterval(values, { resamples: 500, seed: 3 })).toEqual(
    meanInterval(values, { resamples: 500, seed: 3 }),
  );
  expect(meanInterval(values, { resamples: 500, seed: 3 })).not.toEqual(
    meanInterval(values, { resamples: 500, seed: 4 }),
  );
  expect(() => pairedDifference([1], [1, 0])).toThrow(/one length/);
});
