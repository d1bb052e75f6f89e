// REINFORCE++ and its baseline form through `computeAdvantages`, against stored values.

import { discountedReturns } from '../../../../src/training/algorithms/advantages/discounted-returns.js';
import { algorithmSettings, computeAdvantages } from '../../../../src/training/algorithms/index.js';
import { difference, type Matrix, readLosses } from '../support.js';

interface ReturnsCase {
  readonly case: string;
  readonly gamma: number;
  readonly beta: number;
  readonly outcome: readonly number[];
  readonly groups: readonly string[];
  readonly mask: Matrix;
  readonly logpOld: Matrix;
  readonly logpRef: Matrix;
  readonly tokenRewards: Matrix;
  readonly ours: Record<'returns' | 'reinforcePlusPlus' | 'reinforcePlusPlusBaseline', Matrix>;
}

const rolloutsOf = (c: ReturnsCase) =>
  c.mask.map((lossMask, i) => ({
    lossMask,
    groupId: c.groups[i]!,
    reward: c.outcome[i]!,
    logprobsOld: c.logpOld[i]!,
    logprobsRef: c.logpRef[i]!,
  }));

describe.each(readLosses<ReturnsCase>('returns'))('$case', (c) => {
  test('returns', () => {
    const returns = c.mask.map((mask, i) => discountedReturns(c.tokenRewards[i]!, mask, c.gamma));
    expect(difference(returns, c.ours.returns)).toBeLessThan(1e-6);
  });

  test('reinforce++', () => {
    const settings = algorithmSettings('reinforce++', { gamma: c.gamma, klBeta: c.beta });
    const { advantages, keep } = computeAdvantages(rolloutsOf(c), settings);
    expect(difference(advantages, c.ours.reinforcePlusPlus)).toBeLessThan(1e-6);
    expect(keep.every((kept) => kept)).toBe(true);
  });

  test('reinforce++-baseline', () => {
    const settings = algorithmSettings('reinforce++', { advantage: 'reinforce++-baseline', klPlace: 'none' });
    const { advantages } = computeAdvantages(rolloutsOf(c), settings);
    expect(difference(advantages, c.ours.reinforcePlusPlusBaseline)).toBeLessThan(1e-6);
  });
});
