// The clipped surrogate against stored values: loss, gradient, clip fractions, approximate KL.

import type { Aggregation } from '../../../../src/training/algorithms/aggregation.js';
import { summariseMetrics } from '../../../../src/training/algorithms/index.js';
import { bare, difference, evaluateWhole, type Matrix, readLosses } from '../support.js';

interface PpoCase {
  readonly case: string;
  readonly epsLow: number;
  readonly epsHigh: number;
  readonly aggregation: Aggregation;
  readonly norm: number;
  readonly mask: Matrix;
  readonly logp: Matrix;
  readonly logpOld: Matrix;
  readonly advantages: Matrix;
  readonly ours: {
    readonly loss: number;
    readonly gradLogp: Matrix;
    readonly clipFraction: number;
    readonly approxKl: number;
    readonly approxKlK3: number;
    readonly ratioMax: number;
  };
  readonly verlDualClip3: {
    readonly loss: number;
    readonly gradLogp: Matrix;
    readonly clipFractionLower: number;
  };
}

const settingsOf = (c: PpoCase, dualClip: number | null) =>
  bare('ppo', {
    clipEpsilonLow: c.epsLow,
    clipEpsilonHigh: c.epsHigh,
    aggregation: c.aggregation,
    tokenSumNorm: c.norm,
    dualClip,
  });

/** 1e-6, or 1e-9 of a large number: the files hold nine digits. */
const within = (wanted: number): number => Math.max(1e-6, Math.abs(wanted) * 1e-8);
const largest = (matrix: Matrix): number => Math.max(...matrix.flat().map(Math.abs));

describe.each(readLosses<PpoCase>('ppo'))('$case', (c) => {
  test('loss, gradient and metrics', () => {
    const { evaluation, gradient } = evaluateWhole(c, settingsOf(c, null));
    expect(Math.abs(evaluation.loss - c.ours.loss)).toBeLessThan(within(c.ours.loss));
    expect(difference(gradient, c.ours.gradLogp)).toBeLessThan(within(largest(c.ours.gradLogp)));
    const figures = summariseMetrics(evaluation.metrics);
    expect(figures['clipFraction']).toBeCloseTo(c.ours.clipFraction, 6);
    expect(figures['approxKlK1']).toBeCloseTo(c.ours.approxKl, 6);
    expect(Math.abs(figures['approxKl']! - c.ours.approxKlK3)).toBeLessThan(within(c.ours.approxKlK3));
    expect(Math.abs(figures['ratioMax']! - c.ours.ratioMax)).toBeLessThan(within(c.ours.ratioMax));
  });

  test("dual clip at 3 is verl's", () => {
    const { evaluation, gradient } = evaluateWhole(c, settingsOf(c, 3));
    const { loss, gradLogp, clipFractionLower } = c.verlDualClip3;
    expect(Math.abs(evaluation.loss - loss)).toBeLessThan(within(loss));
    expect(difference(gradient, gradLogp)).toBeLessThan(within(largest(gradLogp)));
    expect(summariseMetrics(evaluation.metrics)['dualClipFraction']).toBeCloseTo(clipFractionLower, 6);
  });

  test('float32 log-probabilities give it to 1e-5', () => {
    const single = (matrix: Matrix): number[][] => matrix.map((row) => Array.from(Float32Array.from(row)));
    const rounded = {
      ...c,
      logp: single(c.logp),
      logpOld: single(c.logpOld),
      advantages: single(c.advantages),
    };
    const { evaluation, gradient } = evaluateWhole(rounded, settingsOf(c, null));
    const scale = Math.max(largest(c.ours.gradLogp), Math.abs(c.ours.loss));
    expect(Math.abs(evaluation.loss - c.ours.loss)).toBeLessThan(1e-5 * scale);
    expect(difference(gradient, c.ours.gradLogp)).toBeLessThan(1e-5 * scale);
  });
});

test('the file reaches the clamp of the log ratio and the dual clip', () => {
  const cases = readLosses<PpoCase>('ppo');
  expect(Math.max(...cases.map((c) => c.ours.ratioMax))).toBeGreaterThan(1e8);
  expect(Math.max(...cases.map((c) => c.verlDualClip3.clipFractionLower))).toBeGreaterThan(0);
});
