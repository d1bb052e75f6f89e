// Where the reward lies in a sequence: the outcome on the last sampled token, a KL charge on every sampled token.
//
// Search-R1 section 3.1 charges beta KL inside the reward for PPO, token by token, with k1 of the policy that sampled.
// A reward can only come to lie on a sampled token here; verl loses one that lies elsewhere without a word.

import { type KlEstimator, klEstimate } from '../losses/kl.js';
import { maskedPositions, pick } from '../masked.js';

export interface KlCharge {
  readonly logprobsOld: ArrayLike<number>;
  readonly logprobsRef: ArrayLike<number>;
  readonly beta: number;
  readonly estimator: KlEstimator;
}

/**
 * @param outcome  reward of the whole rollout
 * @param mask     [T], 1 on sampled tokens
 * @returns        [T], 0 where the mask is 0
 */
export function tokenRewards(
  outcome: number,
  mask: ArrayLike<number>,
  charge: KlCharge | null,
): Float64Array {
  const positions = maskedPositions(mask, 'lossMask');
  const rewards = new Float64Array(mask.length);
  const last = positions.at(-1);
  if (last === undefined) return rewards;
  rewards[last] = outcome;
  if (charge === null || charge.beta === 0) return rewards;
  const old = pick(charge.logprobsOld, positions, mask.length, 'logprobsOld');
  const reference = pick(charge.logprobsRef, positions, mask.length, 'logprobsRef');
  positions.forEach((t, i) => {
    rewards[t]! -= charge.beta * klEstimate(charge.estimator, old[i]!, reference[i]!);
  });
  return rewards;
}
