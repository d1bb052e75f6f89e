// Covariance of advantage and log-probability, token by token (2505.22617, eq. 10): where entropy is lost.

import { mean } from '../../../util/mean.js';

/**
 * (A_t - mean A)(logp_t - mean logp), means over all sampled tokens of the batch.
 * @param advantages  compacted, for each sequence
 * @param logprobs    the current ones, likewise
 */
export function tokenCovariances(
  advantages: readonly Float64Array[],
  logprobs: readonly Float64Array[],
): Float64Array[] {
  const meanAdvantage = mean(advantages.flatMap((values) => [...values]));
  const meanLogprob = mean(logprobs.flatMap((values) => [...values]));
  return advantages.map((values, s) =>
    values.map((advantage, i) => (advantage - meanAdvantage) * (logprobs[s]![i]! - meanLogprob)),
  );
}

/** Tokens that a share of the batch means: rounded down, at least one. */
export const shareOf = (share: number, tokens: number): number => Math.max(1, Math.floor(share * tokens));
