// Generalised advantage estimation (1506.02438) over the sampled tokens, as if the others were not there.
//
//   delta_t = r_t + gamma V_t' - V_t,   A_t = delta_t + gamma lambda A_t',   t' = the next sampled token
//
// Retrieved text neither earns credit nor discounts it. Search-R1's release lets the recursion run through observations;
// with gamma = lambda = 1 the sum telescopes and hides that, with any other pair it gives other numbers.

import { maskedPositions, pick, spread } from '../masked.js';

/**
 * @param rewards  [T] of the tokens
 * @param values   [T], V_t from position t - 1
 * @param mask     [T], 1 on sampled tokens
 * @returns        both [T], 0 where the mask is 0; advantages not whitened, returns A + V
 */
export function gae(
  rewards: ArrayLike<number>,
  values: ArrayLike<number>,
  mask: ArrayLike<number>,
  { gamma, lambda }: { readonly gamma: number; readonly lambda: number },
): { readonly advantages: Float64Array; readonly returns: Float64Array } {
  const positions = maskedPositions(mask, 'lossMask');
  const earned = pick(rewards, positions, mask.length, 'tokenRewards');
  const expected = pick(values, positions, mask.length, 'valuesOld');
  const advantages = new Float64Array(positions.length);
  let [nextValue, nextAdvantage] = [0, 0];
  for (let i = positions.length - 1; i >= 0; i--) {
    const delta = earned[i]! + gamma * nextValue - expected[i]!;
    nextAdvantage = delta + gamma * lambda * nextAdvantage;
    nextValue = expected[i]!;
    advantages[i] = nextAdvantage;
  }
  const returns = advantages.map((advantage, i) => advantage + expected[i]!);
  return {
    advantages: spread(advantages, positions, mask.length),
    returns: spread(returns, positions, mask.length),
  };
}
