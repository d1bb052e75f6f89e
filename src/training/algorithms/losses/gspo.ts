// GSPO (2507.18071, eq. 5): the ratio belongs to the sequence, as the reward does.
//
//   s_i = exp(mean_t (logp_t - logpOld_t)),   L = -mean_i min(s_i A_i, clip(s_i, 1 - low, 1 + high) A_i)
//
// The paper clips at 3e-4 and 4e-4 and has no importance weights of an engine. Ours takes one for the sequence, with the
// length normalisation of s_i: min(exp(mean_t (logpOld_t - logpEngine_t)), cap), which the objective passes as equal
// weights. Where advantages differ within a sequence (they do not in GSPO) their mean is A_i.

import { mean } from '../../../util/mean.js';
import { clipRatio } from './clipped.js';
import { clampLogRatio, LOG_RATIO_LIMIT } from './ratio.js';
import type { TokenLoss } from './token-loss.js';

/**
 * Every token carries the sequence's loss, and the derivative of the sequence's loss by the *mean* log ratio, so that
 * `seq-mean-token-mean` gives the paper's mean over sequences and its gradient.
 */
export const gspoLoss: TokenLoss = ({ logprobs, logprobsOld, advantages, weights }, settings) => {
  const count = logprobs.length;
  if (count === 0) return { losses: logprobs, gradients: logprobs, clipped: 0, dualClipped: 0 };
  const logRatio = mean(logprobs.map((logprob, i) => logprob - logprobsOld[i]!));
  const rho = Math.exp(clampLogRatio(logRatio));
  const advantage = mean(advantages);
  const plain = -rho * advantage;
  const bounded = -clipRatio(rho, settings) * advantage;
  const clipped = bounded > plain;
  const weight = weights[0]!;
  const gradient = clipped || Math.abs(logRatio) > LOG_RATIO_LIMIT ? 0 : weight * plain;
  return {
    losses: new Float64Array(count).fill(weight * (clipped ? bounded : plain)),
    gradients: new Float64Array(count).fill(gradient),
    clipped: clipped ? count : 0,
    dualClipped: 0,
  };
};
