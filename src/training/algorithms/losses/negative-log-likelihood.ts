// Supervised fine-tuning: cross-entropy on the tokens that the trajectory's policy sampled.
//
// Retrieved tokens are masked here exactly as in reinforcement learning; the model learns to search, not to write
// passages. Importance weights do not apply: the data is taken as the target, not as a sample of a policy.

import type { TokenLoss } from './token-loss.js';

/** loss_t = -logp_t. */
export const negativeLogLikelihood: TokenLoss = ({ logprobs }) => ({
  losses: logprobs.map((logprob) => -logprob),
  gradients: new Float64Array(logprobs.length).fill(-1),
  clipped: 0,
  dualClipped: 0,
});
