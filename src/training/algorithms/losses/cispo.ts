// CISPO (MiniMax-M1, 2506.13585, eq. 4): the ratio is a detached, capped weight, so that no token loses its gradient.
//
// The paper bounds the weight above only and leaves the bound open; epsMax 5 is TRL's default. verl clamps to
// [0.8, 1.2] unless told otherwise, which is another loss. The paper averages over all tokens (`token-mean`).

import { ratio } from './ratio.js';
import type { TokenLoss } from './token-loss.js';

/** loss_t = -w_t stopgrad(min(rho_t, epsMax)) A_t logp_t. Capped tokens count as clipped, yet keep a gradient. */
export const cispoLoss: TokenLoss = ({ logprobs, logprobsOld, advantages, weights }, settings) => {
  const gradients = new Float64Array(logprobs.length);
  let clipped = 0;
  for (let i = 0; i < gradients.length; i++) {
    const rho = ratio(logprobs[i]!, logprobsOld[i]!);
    if (rho > settings.cispoMax) clipped += 1;
    gradients[i] = -weights[i]! * Math.min(rho, settings.cispoMax) * advantages[i]!;
  }
  const losses = gradients.map((gradient, i) => gradient * logprobs[i]!);
  return { losses, gradients, clipped, dualClipped: 0 };
};
