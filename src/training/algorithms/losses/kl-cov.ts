// KL-Cov (2505.22617, section 4.3): tokens of the largest covariance are held near the old policy.
//
// The surrogate is not clipped. The paper chooses a share k of the tokens (2e-4 for 7B models) and penalises
// |logp - logpOld| there; its coefficient is 1, as in verl's function (verl's config class says 0.1). Averaged over all
// tokens, in the paper's code and here. The importance weight acts on the surrogate only: the penalty is no estimate.

import { shareOf } from './covariance.js';
import { ratio, ratioGradient } from './ratio.js';
import type { TokenLoss } from './token-loss.js';

/** loss_t = -w_t A_t rho_t, and + c |logp_t - logpOld_t| on chosen tokens. */
export const klCovLoss: TokenLoss = ({ logprobs, logprobsOld, advantages, weights, chosen }, settings) => {
  const losses = new Float64Array(logprobs.length);
  const gradients = new Float64Array(logprobs.length);
  for (let i = 0; i < losses.length; i++) {
    const [logprob, old] = [logprobs[i]!, logprobsOld[i]!];
    const scale = -weights[i]! * advantages[i]!;
    const penalty = chosen?.[i] === 1 ? settings.klCovCoefficient : 0;
    losses[i] = scale * ratio(logprob, old) + penalty * Math.abs(logprob - old);
    gradients[i] = scale * ratioGradient(logprob, old) + penalty * Math.sign(logprob - old);
  }
  return { losses, gradients, clipped: 0, dualClipped: 0 };
};

/** Of equal covariances the earlier token is chosen, so the choice does not depend on how the batch is split. */
export function chooseKlCov(covariances: readonly Float64Array[], share: number): Uint8Array[] {
  const tokens = covariances.flatMap((values, s) =>
    Array.from(values, (covariance, i) => ({ covariance, s, i })),
  );
  tokens.sort((a, b) => b.covariance - a.covariance || a.s - b.s || a.i - b.i);
  const chosen = covariances.map((values) => new Uint8Array(values.length));
  for (const { s, i } of tokens.slice(0, shareOf(share, tokens.length))) chosen[s]![i] = 1;
  return chosen;
}
