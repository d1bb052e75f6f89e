// Which logged rollouts are too old to learn from: the objective's ratio is only good near the policy that sampled. Their reward
// arrives days later, so they are judged by how far the policy has moved on their own tokens, and not by versions
// (`maxStaleness`) as rollouts of the running training are.

import { mean } from '../../../util/mean.js';
import { klEstimate } from '../losses/kl.js';
import { maskedPositions, pick } from '../masked.js';

export interface PolicyDistance {
  /** Mean k3 of the policy that sampled against the current one, nats a token; 0 without sampled tokens. */
  readonly kl: number;
  /** Share of sampled tokens whose ratio lies beyond the limit, above or below. */
  readonly farShare: number;
}

/**
 * How far the policy has moved on a logged rollout.
 * @param logprobsThen  [T] of the policy that sampled
 * @param logprobsNow   [T] of the current one
 * @param ratioLimit    a ratio above this, or below its inverse, is far
 */
export function policyDistance(
  logprobsThen: ArrayLike<number>,
  logprobsNow: ArrayLike<number>,
  mask: ArrayLike<number>,
  ratioLimit = 2,
): PolicyDistance {
  const positions = maskedPositions(mask, 'lossMask');
  if (positions.length === 0) return { kl: 0, farShare: 0 };
  const then = pick(logprobsThen, positions, mask.length, 'logprobsThen');
  const now = pick(logprobsNow, positions, mask.length, 'logprobsNow');
  const far = now.map((logprob, i) => (Math.abs(logprob - then[i]!) > Math.log(ratioLimit) ? 1 : 0));
  return { kl: mean(now.map((logprob, i) => klEstimate('k3', logprob, then[i]!))), farShare: mean(far) };
}
