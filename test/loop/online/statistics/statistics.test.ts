import { alphaOfAttempt } from '../../../../src/loop/online/statistics/alpha-spending.js';
import { nonInferiority } from '../../../../src/loop/online/statistics/non-inferiority.js';
import {
  evidenceOf,
  newSequentialState,
  observePair,
  type SequentialSettings,
  sequentialVerdict,
} from '../../../../src/loop/online/statistics/sequential-test.js';
import { randomNumbers } from '../../../../src/util/random.js';

const list = (n: number, b: number, c: number) => ({
  candidate: Array.from({ length: n }, (_, i) => (i < b ? 1 : 0)),
  live: Array.from({ length: n }, (_, i) => (i >= b && i < b + c ? 1 : 0)),
});

test('score statistic of paired proportions', () => {
  // By hand: n 100, b 10, c 5, margin 0.1; A 200, B -34.5, C 0.55, q 0.15509.
  const { candidate, live } = list(100, 10, 5);
  const test = nonInferiority(candidate, live, 0.1);
  const q = (34.5 + Math.sqrt(34.5 ** 2 - 4 * 200 * 0.55)) / 400;
  expect(test.z).toBeCloseTo((10 - 5 + 10) / Math.sqrt(100 * (2 * q - 0.1 * 1.1)), 12);
  expect(test).toMatchObject({ onlyCandidateRight: 10, onlyLiveRight: 5, difference: 0.05 });
  expect(test.p).toBeLessThan(0.001);
});

test('policies that answer alike: certain at 300 questions, uncertain at 50', () => {
  const p = (n: number) => nonInferiority(list(n, 0, 0).candidate, list(n, 0, 0).live, 0.03).p;
  // n answers alike where each differs with probability 0.03: 0.97^300 is 1e-4.
  expect(p(300)).toBeLessThan(0.005);
  expect(p(50)).toBeGreaterThan(0.05);
});

test('worse by the margin gives one half; p falls as the candidate gains', () => {
  const at = (b: number, c: number) =>
    nonInferiority(list(300, b, c).candidate, list(300, b, c).live, 0.03).p;
  expect(at(10, 19)).toBeCloseTo(0.5, 10);
  expect(at(10, 30)).toBeGreaterThan(0.9);
  const falling = [0, 5, 10, 20, 40].map((b) => at(b, 10));
  expect([...falling].sort((x, y) => y - x)).toEqual(falling);
  expect(() => nonInferiority([], [], 0.03)).toThrow('at least one');
  expect(() => nonInferiority([1], [1, 0], 0.03)).toThrow('1 and 2 results');
});

test('no number of attempts spends more than alpha', () => {
  let spent = 0;
  for (let attempt = 1; attempt <= 100_000; attempt++) spent += alphaOfAttempt(0.05, attempt);
  expect(spent).toBeLessThan(0.05);
  expect(spent).toBeGreaterThan(0.0499);
});

const sequential: SequentialSettings = { alpha: 0.05, margin: 0.03, minPairs: 50, maxPairs: 400 };

function watch(random: () => number, newer: number, older: number) {
  let state = newSequentialState();
  for (;;) {
    const verdict = sequentialVerdict(state, sequential);
    if (verdict !== 'open') return { verdict, pairs: state.pairs };
    state = observePair(state, random() < newer ? 1 : 0, random() < older ? 1 : 0, sequential);
  }
}

test('sequential test: good versions are kept, bad ones go back soon, and never before the least count', () => {
  const random = randomNumbers(3);
  const runs = (newer: number, older: number) =>
    Array.from({ length: 400 }, () => watch(random, newer, older));
  const worse = (outcomes: ReturnType<typeof runs>) =>
    outcomes.filter(({ verdict }) => verdict === 'worse').length / outcomes.length;
  // At the border of what is allowed: Ville's bound.
  expect(worse(runs(0.47, 0.5))).toBeLessThanOrEqual(0.05 + 0.022);
  expect(worse(runs(0.5, 0.5))).toBeLessThan(0.03);
  const bad = runs(0.2, 0.5);
  expect(worse(bad)).toBeGreaterThan(0.98);
  const mean = bad.reduce((sum, { pairs }) => sum + pairs, 0) / bad.length;
  expect(mean).toBeLessThan(130);
  expect(Math.min(...bad.map(({ pairs }) => pairs))).toBeGreaterThanOrEqual(50);
});

test('the worst outcome costs a bet at most all of its wealth', () => {
  let state = newSequentialState();
  for (let i = 0; i < 1000; i++) state = observePair(state, 1, 0, sequential);
  expect(evidenceOf(state)).toBeGreaterThan(0);
  expect(evidenceOf(state)).toBeLessThan(1e-6);
});
