// What the gate does in the long run, by simulation with a seed: how often a truly worse candidate is published, and
// how often a truly better one is refused.

import { decideGate, type GatePair, type GateSettings } from '../../../../src/loop/online/gate/decide.js';
import { RENEWED_AFTER } from '../../../../src/loop/online/gate/stretch.js';
import { alphaOfAttempt } from '../../../../src/loop/online/statistics/alpha-spending.js';
import { randomNumbers } from '../../../../src/util/random.js';

const settings: GateSettings = {
  questions: 300,
  margin: 0.03,
  alpha: 0.05,
  confirmEvery: 5,
  maxAttempts: 20,
  maxKl: 0.1,
  maxValidityLoss: 0.02,
};

/** Both right, only one right, or none; the two policies agree on most questions, as neighbours do. */
function draw(random: () => number, onlyNow: number, onlyBefore: number): GatePair {
  const u = random();
  const candidate = u < onlyNow || (u >= onlyNow + onlyBefore && u < 0.6) ? 1 : 0;
  const live = u >= onlyNow && u < 0.6 ? 1 : 0;
  const actions = { validActions: 1, invalidActions: 0 };
  return { id: '', candidate: { em: candidate, ...actions }, live: { em: live, ...actions } };
}

const passes = (random: () => number, onlyNow: number, onlyBefore: number, attempt: number): boolean =>
  decideGate(
    {
      pairs: Array.from({ length: settings.questions }, () => draw(random, onlyNow, onlyBefore)),
      alpha: alphaOfAttempt(settings.alpha, attempt),
      kl: 0,
      probeChange: 1,
      deletedRecords: 0,
      confirmation: null,
    },
    settings,
  ).verdict === 'passed';

/** Share of runs in which any of `candidates` passes. */
function publishedShare(onlyNow: number, onlyBefore: number, candidates: number, runs: number): number {
  const random = randomNumbers(20_240_917);
  let published = 0;
  for (let run = 0; run < runs; run++)
    for (let attempt = 1; attempt <= candidates; attempt++)
      if (passes(random, onlyNow, onlyBefore, attempt)) {
        published++;
        break;
      }
  return published / runs;
}

// Columns: right only now, right only before. The margin is 0.03.
test.each([
  ['by exactly the margin, differing on 13 % of the questions', 0.05, 0.08],
  ['by exactly the margin, differing on 5 %', 0.01, 0.04],
  ['by 0.05', 0.05, 0.1],
])('of twenty candidates worse %s, any is published in at most 5 %% of runs', (_name, now, before) => {
  expect(publishedShare(now, before, 20, 600)).toBeLessThanOrEqual(0.05 + 2 * Math.sqrt((0.05 * 0.95) / 600));
});

test('a much worse candidate is never published', () => {
  expect(publishedShare(0.03, 0.15, 20, 200)).toBe(0);
});

test('the first candidate: a better one is seldom refused, an equal one often, for it has to be shown', () => {
  const refused = (now: number, before: number): number => 1 - publishedShare(now, before, 1, 600);
  expect(refused(0.15, 0.05)).toBeLessThan(0.02);
  expect(refused(0.1, 0.05)).toBeLessThan(0.12);
  expect(refused(0.05, 0.03)).toBeLessThan(0.35);
  expect(refused(0.05, 0.05)).toBeGreaterThan(0.4);
});

test('better ones still pass after ten refused candidates', () => {
  const random = randomNumbers(7);
  const share = (now: number, before: number): number =>
    Array.from({ length: 300 }, () => passes(random, now, before, 11)).filter(Boolean).length / 300;
  expect(share(0.15, 0.05)).toBeGreaterThan(0.9);
  expect(share(0.05, 0.08)).toBe(0);
});

test('over a hundred candidates, with other questions after each five: of those worse by the margin one in a hundred passes, and of better ones as many at the end as at the beginning', () => {
  const random = randomNumbers(11);
  const share = (now: number, before: number, from: number, to: number, runs: number): number => {
    let passed = 0;
    for (let run = 0; run < runs; run++)
      for (let i = from; i < to; i++) passed += Number(passes(random, now, before, 1 + (i % RENEWED_AFTER)));
    return passed / (runs * (to - from));
  };
  // alpha (1 - 1/6) of each five candidates.
  const limit = (settings.alpha * (1 - 1 / (RENEWED_AFTER + 1))) / RENEWED_AFTER;
  const noise = 2 * Math.sqrt(limit / 4000);
  expect(share(0.05, 0.08, 0, 100, 40)).toBeLessThanOrEqual(limit + noise);
  expect(share(0.01, 0.04, 0, 100, 40)).toBeLessThanOrEqual(limit + noise);
  const [first, last] = [share(0.09, 0.06, 0, 5, 120), share(0.09, 0.06, 95, 100, 120)];
  expect(first).toBeGreaterThan(0.5);
  expect(Math.abs(last - first)).toBeLessThan(0.1);
  // On the first questions for ever it would have to wait for much better luck.
  const spent =
    Array.from({ length: 300 }, () => passes(random, 0.09, 0.06, 96)).filter(Boolean).length / 300;
  expect(spent).toBeLessThan(0.1);
});
