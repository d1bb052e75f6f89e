// REINFORCE (Williams 1992): the score function times the advantage, for rollouts of the current policy.
//
// There is no ratio and no clip, so it is meant for one epoch on fresh rollouts; the truncated importance weight
// still corrects for the engine's arithmetic.

import type { TokenLoss } from './token-loss.js';

/** loss_t = -w_t A_t logp_t. */
export const reinforceLoss: TokenLoss = ({ logprobs, advantages, weights }) => {
  const gradients = advantages.map((advantage, i) => -weights[i]! * advantage);
  const losses = gradients.map((gradient, i) => gradient * logprobs[i]!);
  return { losses, gradients, clipped: 0, dualClipped: 0 };
};
