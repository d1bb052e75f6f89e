// REINFORCE++ (2501.03262): the discounted rewards to come, token by token, without a critic.
//
// The paper puts token KL into the reward, whitens the returns over the batch and uses PPO's clip. The sum runs over
// sampled tokens only, so that a long observation discounts nothing.

import { maskedPositions, pick, spread } from '../masked.js';

/**
 * @param rewards  [T]
 * @param mask     [T], 1 on sampled tokens
 * @returns        [T], 0 where the mask is 0
 */
export function discountedReturns(
  rewards: ArrayLike<number>,
  mask: ArrayLike<number>,
  gamma: number,
): Float64Array {
  const positions = maskedPositions(mask, 'lossMask');
  const returns = pick(rewards, positions, mask.length, 'tokenRewards');
  for (let i = returns.length - 2; i >= 0; i--) returns[i]! += gamma * returns[i + 1]!;
  return spread(returns, positions, mask.length);
}
