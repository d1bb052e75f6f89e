// Supervised fine-tuning: cross-entropy on the tokens that the trajectory's policy sampled.
//
// Retrieved tokens are masked here exactly as in reinforcement learning; the model learns to search, not to write
// passages. Importance weights do not apply: the data is taken as the target, not as a sample of a policy.
//
// Most tokens of a trajectory are copied or prescribed by the form and soon certain; the few that decide (search again or
// answer, which sentence, which name) then drown among them. The factor of the focal loss (Lin et al. 2017,
// 1708.02002, eq. 4) takes weight from what is certain; gamma 0, the default, is plain cross-entropy.

import type { TokenLoss } from './token-loss.js';

/** With p = exp(logp): loss_t = -(1 - p)^gamma logp_t. */
export const negativeLogLikelihood: TokenLoss = ({ logprobs }, { focalGamma: gamma }) => ({
  losses: logprobs.map((logprob) => -(missing(logprob) ** gamma) * logprob),
  gradients: logprobs.map((logprob) => {
    if (gamma === 0) return -1;
    const left = missing(logprob);
    // As p nears 1, (1 - p)^(gamma - 1) logp goes to 0 for every gamma above 0.
    const bend = left === 0 ? 0 : gamma * left ** (gamma - 1) * Math.exp(logprob) * logprob;
    return bend - left ** gamma;
  }),
  clipped: 0,
  dualClipped: 0,
});

/** 1 - p, also where p is near 1; rounding may leave a log-probability above 0. */
const missing = (logprob: number): number => Math.max(0, -Math.expm1(logprob));
