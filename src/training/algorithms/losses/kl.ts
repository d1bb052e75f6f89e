// Estimates of KL(pi || pi_ref) from one sampled token (Schulman, "Approximating KL divergence", 2020).
//
// k1 = log pi - log pi_ref is unbiased and may be negative; k2 = k1^2 / 2 is biased with little variance;
// k3 = exp(-k1) + k1 - 1 is unbiased and never negative. Search-R1's GRPO uses k3 in the loss, its PPO k1 in the reward.
// The log ratio is clamped to +-20 before exp. verl and Search-R1's release clamp k3's value to +-10 as well, which takes
// the gradient from the very tokens that have drifted most; ours does not.

import { clampLogRatio, LOG_RATIO_LIMIT } from './ratio.js';

export type KlEstimator = 'k1' | 'k2' | 'k3';

/**
 * @param logprob     nats, of the policy
 * @param logprobRef  nats, of the reference
 */
export function klEstimate(estimator: KlEstimator, logprob: number, logprobRef: number): number {
  const difference = logprob - logprobRef;
  if (estimator === 'k1') return difference;
  if (estimator === 'k2') return 0.5 * difference * difference;
  const clamped = clampLogRatio(-difference);
  return Math.expm1(clamped) - clamped;
}

/** d klEstimate / d logprob. Beyond the clamp k3 is constant. */
export function klGradient(estimator: KlEstimator, logprob: number, logprobRef: number): number {
  const difference = logprob - logprobRef;
  if (estimator === 'k1') return 1;
  if (estimator === 'k2') return difference;
  return Math.abs(difference) > LOG_RATIO_LIMIT ? 0 : -Math.expm1(-difference);
}
