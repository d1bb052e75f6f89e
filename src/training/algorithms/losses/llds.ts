// LLDS (2512.04220): keeps the likelihood of responses that were not bad from sinking.
//
// The paper sees Search-R1's GRPO collapse when the likelihood of correct responses falls step by step, and penalises
// max(0, logpOld - logp). Gate and denominator are ours: sequences with A >= 0 whose summed log-probability fell, over
// all sampled tokens of the whole batch. Both are decided within a sequence, so no batch pass is needed.

import { mean } from '../../../util/mean.js';

/**
 * @param weight  the add-on's weight over the sampled tokens of the batch
 * @returns       this sequence's part of the loss; its gradient is added to `gradients` [n]
 */
export function addLlds(
  logprobs: Float64Array,
  logprobsOld: Float64Array,
  advantages: Float64Array,
  weight: number,
  gradients: Float64Array,
): number {
  const falls = logprobs.map((logprob, i) => logprobsOld[i]! - logprob);
  if (falls.length === 0 || mean(advantages) < 0 || mean(falls) <= 0) return 0;
  let loss = 0;
  falls.forEach((fall, i) => {
    if (fall <= 0) return;
    loss += weight * fall;
    gradients[i]! -= weight;
  });
  return loss;
}
