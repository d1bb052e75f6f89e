import { klEstimate, klGradient } from '../../../../src/training/algorithms/losses/kl.js';
import { type Matrix, readLosses } from '../support.js';

interface KlCase {
  readonly case: string;
  readonly logp: Matrix;
  readonly logpRef: Matrix;
  readonly ours: Record<'k1' | 'k2' | 'k3' | 'gradK3', Matrix>;
}

/** Nine digits of the log-probabilities are stored, and exp makes more of what they lack. */
const close = (ours: number, wanted: number): void =>
  expect(Math.abs(ours - wanted)).toBeLessThan(1e-6 + Math.abs(wanted) * 1e-7);

test.each(readLosses<KlCase>('kl'))('$case', (c) => {
  c.logp.forEach((row, s) => {
    row.forEach((logprob, t) => {
      const reference = c.logpRef[s]![t]!;
      for (const estimator of ['k1', 'k2', 'k3'] as const) {
        close(klEstimate(estimator, logprob, reference), c.ours[estimator][s]![t]!);
      }
      close(klGradient('k3', logprob, reference), c.ours.gradK3[s]![t]!);
    });
  });
});

test.each(['k1', 'k2', 'k3'] as const)('gradient of %s by central differences', (estimator) => {
  for (const gap of [-25, -3, -0.4, 0, 0.4, 3, 25]) {
    const h = 1e-6;
    const numeric =
      (klEstimate(estimator, -1 + h, -1 + gap) - klEstimate(estimator, -1 - h, -1 + gap)) / (2 * h);
    const wanted = klGradient(estimator, -1, -1 + gap);
    expect(Math.abs(numeric - wanted)).toBeLessThan(1e-6 * Math.max(1, Math.abs(wanted)));
  }
});

test('k3 is 0 at equality and never negative, also for tiny gaps', () => {
  expect(klEstimate('k3', -1, -1)).toBe(0);
  for (const gap of [1e-12, -1e-12, 1e-9, -1e-6])
    expect(klEstimate('k3', -1, -1 + gap)).toBeGreaterThanOrEqual(0);
});
