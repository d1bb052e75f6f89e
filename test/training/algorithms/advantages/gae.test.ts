// GAE, token rewards and whitening against stored values; masked entries cannot matter.

import fc from 'fast-check';
import { gae } from '../../../../src/training/algorithms/advantages/gae.js';
import { tokenRewards } from '../../../../src/training/algorithms/advantages/token-rewards.js';
import { whiten } from '../../../../src/training/algorithms/advantages/whiten.js';
import { difference, type Matrix, readLosses } from '../support.js';

interface GaeCase {
  readonly case: string;
  readonly gamma: number;
  readonly lambda: number;
  readonly beta?: number;
  readonly outcome?: readonly number[];
  readonly mask: Matrix;
  readonly values: Matrix;
  readonly logpOld?: Matrix;
  readonly logpRef?: Matrix;
  readonly tokenRewards: Matrix;
  readonly ours: { readonly advantages: Matrix; readonly returns: Matrix; readonly whitened: Matrix };
  readonly searchR1Released?: { readonly returns: Matrix };
}

const cases = readLosses<GaeCase>('gae');

test('the file has cases with gaps and lambda below 1', () => {
  expect(cases.filter(({ lambda }) => lambda < 1).length).toBeGreaterThanOrEqual(2);
});

test.each(cases)('$case', (c) => {
  const rows = c.mask.map((mask, i) => gae(c.tokenRewards[i]!, c.values[i]!, mask, c));
  const advantages = rows.map((row) => row.advantages);
  expect(difference(advantages, c.ours.advantages)).toBeLessThan(1e-6);
  expect(
    difference(
      rows.map((row) => row.returns),
      c.ours.returns,
    ),
  ).toBeLessThan(1e-6);
  expect(difference(whiten(advantages, c.mask), c.ours.whitened)).toBeLessThan(1e-6);
});

test.each(cases.filter((c) => c.outcome !== undefined))('token rewards of $case', (c) => {
  const rewards = c.mask.map((mask, i) =>
    tokenRewards(c.outcome![i]!, mask, {
      logprobsOld: c.logpOld![i]!,
      logprobsRef: c.logpRef![i]!,
      beta: c.beta!,
      estimator: 'k1',
    }),
  );
  expect(difference(rewards, c.tokenRewards)).toBeLessThan(1e-6);
});

test('with lambda below 1 a recursion through observations gives other returns', () => {
  const c = cases.find(({ case: name }) => name === 'gaps-strong-discount') as GaeCase;
  const rows = c.mask.map((mask, i) => gae(c.tokenRewards[i]!, c.values[i]!, mask, c).returns);
  expect(difference(rows, c.searchR1Released!.returns)).toBeGreaterThan(1e-2);
});

const tokens = fc.array(
  fc.record({
    mask: fc.constantFrom(0, 1),
    reward: fc.double({ min: -2, max: 2, noNaN: true }),
    value: fc.double({ min: -3, max: 3, noNaN: true }),
    noise: fc.oneof(fc.double(), fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY)),
  }),
  { minLength: 1, maxLength: 20 },
);
const share = fc.double({ min: 0, max: 1, noNaN: true });

test('equals GAE of the compacted sequence, whatever stands under the mask', () => {
  fc.assert(
    fc.property(tokens, share, share, (row, gamma, lambda) => {
      const mask = row.map((t) => t.mask);
      const hidden = (values: number[]): number[] =>
        values.map((v, i) => (mask[i] === 1 ? v : row[i]!.noise));
      const [rewards, values] = [row.map((t) => t.reward), row.map((t) => t.value)];
      const whole = gae(hidden(rewards), hidden(values), mask, { gamma, lambda });
      const kept = (array: ArrayLike<number>): number[] => Array.from(array).filter((_, i) => mask[i] === 1);
      const compact = gae(kept(rewards), kept(values), kept(mask), { gamma, lambda });
      expect(kept(whole.advantages)).toEqual(Array.from(compact.advantages));
      expect(kept(whole.returns)).toEqual(Array.from(compact.returns));
      mask.forEach((m, i) => {
        if (m === 0) expect([whole.advantages[i], whole.returns[i]]).toEqual([0, 0]);
      });
      expect(whiten([hidden(values)], [mask])).toEqual(whiten([values], [mask]));
    }),
  );
});

test('gae is the double sum of its definition', () => {
  const [rewards, values] = [
    [0.1, 0, -0.2, 1],
    [0.3, -0.1, 0.4, 0.2],
  ];
  const [gamma, lambda] = [0.9, 0.7];
  const { advantages } = gae(rewards, values, [1, 1, 1, 1], { gamma, lambda });
  const delta = (t: number): number => rewards[t]! + gamma * (values[t + 1] ?? 0) - values[t]!;
  for (let t = 0; t < 4; t++) {
    let wanted = 0;
    for (let k = t; k < 4; k++) wanted += (gamma * lambda) ** (k - t) * delta(k);
    expect(advantages[t]).toBeCloseTo(wanted, 12);
  }
});
