// PPO's clipped surrogate (1707.06347, eq. 7), with separate bounds as in DAPO (2503.14476, section 3.1).
//
// Search-R1 eq. 2 and 3 use it with one epsilon, 0.2. verl adds a dual clip (1912.09729) that bounds the loss of
// tokens with A < 0 at 3 |A| and has it on by default; Search-R1's page has none, so ours is off unless asked for.

import { ratio, ratioGradient } from './ratio.js';
import type { TokenLoss } from './token-loss.js';

/** loss_t = -w_t min(rho_t A_t, clip(rho_t, 1 - low, 1 + high) A_t). */
export const clippedLoss: TokenLoss = ({ logprobs, logprobsOld, advantages, weights }, settings) => {
  const losses = new Float64Array(logprobs.length);
  const gradients = new Float64Array(logprobs.length);
  let clipped = 0;
  let dualClipped = 0;
  for (let i = 0; i < losses.length; i++) {
    const [logprob, old, advantage, weight] = [logprobs[i]!, logprobsOld[i]!, advantages[i]!, weights[i]!];
    const rho = ratio(logprob, old);
    const plain = -rho * advantage;
    const bounded = -clipRatio(rho, settings) * advantage;
    let loss = plain;
    let gradient = -ratioGradient(logprob, old) * advantage;
    if (bounded > plain) {
      loss = bounded;
      gradient = 0;
      clipped += 1;
    }
    if (settings.dualClip !== null && advantage < 0 && loss > -advantage * settings.dualClip) {
      loss = -advantage * settings.dualClip;
      gradient = 0;
      dualClipped += 1;
    }
    losses[i] = weight * loss;
    gradients[i] = weight * gradient;
  }
  return { losses, gradients, clipped, dualClipped };
};

export function clipRatio(
  rho: number,
  bounds: { readonly clipEpsilonLow: number; readonly clipEpsilonHigh: number },
): number {
  return Math.min(Math.max(rho, 1 - bounds.clipEpsilonLow), 1 + bounds.clipEpsilonHigh);
}
