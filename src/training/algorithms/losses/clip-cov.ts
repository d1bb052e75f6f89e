// Clip-Cov (2505.22617, section 4.2): a few random tokens of large covariance get no gradient.
//
// Of the tokens that PPO's clip leaves alone and whose covariance lies between the bounds, a share of the batch
// (2e-4 of all sampled tokens, at least one) is drawn. As in verl the drawn token's loss is 0 and it stays in the
// denominator, and all others keep PPO's clip, which the paper's formula leaves out. verl's bounds are 1 and 5.

import { clippedLoss, clipRatio } from './clipped.js';
import { shareOf } from './covariance.js';
import { ratio } from './ratio.js';
import type { TokenLoss, TokenLossInput } from './token-loss.js';

export const clipCovLoss: TokenLoss = (input, settings) => {
  const output = clippedLoss(input, settings);
  input.chosen?.forEach((drawn, i) => {
    if (drawn === 0) return;
    output.losses[i] = 0;
    output.gradients[i] = 0;
  });
  return output;
};

/** @param random  uniform in [0, 1); used only when there is a choice */
export function chooseClipCov(
  sequences: readonly Pick<TokenLossInput, 'logprobs' | 'logprobsOld' | 'advantages'>[],
  covariances: readonly Float64Array[],
  settings: Parameters<TokenLoss>[1],
  random: () => number,
): Uint8Array[] {
  const chosen = covariances.map((values) => new Uint8Array(values.length));
  const eligible: { s: number; i: number }[] = [];
  let total = 0;
  covariances.forEach((values, s) => {
    total += values.length;
    const { logprobs, logprobsOld, advantages } = sequences[s]!;
    values.forEach((covariance, i) => {
      const rho = ratio(logprobs[i]!, logprobsOld[i]!);
      const clipped = clipRatio(rho, settings) * advantages[i]! < rho * advantages[i]!;
      if (!clipped && covariance > settings.clipCovLow && covariance < settings.clipCovHigh)
        eligible.push({ s, i });
    });
  });
  const count = Math.min(shareOf(settings.clipCovShare, total), eligible.length);
  for (let n = 0; n < count; n++) {
    if (count < eligible.length) {
      const other = n + Math.floor(random() * (eligible.length - n));
      [eligible[n], eligible[other]] = [eligible[other]!, eligible[n]!];
    }
    chosen[eligible[n]!.s]![eligible[n]!.i] = 1;
  }
  return chosen;
}
