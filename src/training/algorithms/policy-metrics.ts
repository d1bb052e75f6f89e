// How far the policy has moved: from the policy that sampled, from the engine, from the reference.

import { klEstimate } from './losses/kl.js';
import { ratio } from './losses/ratio.js';
import type { TokenLossInput } from './losses/token-loss.js';
import type { MetricBuilder } from './metrics.js';

/** `approxKl` is the mean of k3 of the old policy against the current one, `approxKlK1` that of logpOld - logp. */
export function observeRatios({ logprobs, logprobsOld }: TokenLossInput, metrics: MetricBuilder): void {
  logprobs.forEach((logprob, i) => {
    const old = logprobsOld[i]!;
    metrics.observe('approxKl', klEstimate('k3', logprob, old));
    metrics.observe('approxKlK1', old - logprob);
    metrics.maximum('ratioMax', ratio(logprob, old));
  });
}

/**
 * Mean, upper and lower tail of the truncated weights; mean and worst |logpOld - logpEngine| as `engineGap` and
 * `engineGapMax`.
 */
export function observeWeights(
  { weights, logprobsOld }: TokenLossInput,
  logprobsEngine: Float64Array,
  cap: number,
  metrics: MetricBuilder,
): void {
  logprobsOld.forEach((old, i) => {
    const gap = Math.abs(old - logprobsEngine[i]!);
    metrics.observe('engineGap', gap);
    metrics.maximum('engineGapMax', gap);
  });
  for (const weight of weights) {
    metrics.observe('importanceWeight', weight);
    metrics.observe('importanceWeightCapped', weight >= cap ? 1 : 0);
    metrics.observe('importanceWeightLow', weight < 0.5 ? 1 : 0);
    metrics.maximum('importanceWeightMax', weight);
  }
}

/** `kl` is the mean of k3 against the reference, `klK1` that of logp - logpRef. */
export function observeReference(
  logprobs: Float64Array,
  logprobsRef: Float64Array,
  metrics: MetricBuilder,
): void {
  logprobs.forEach((logprob, i) => {
    metrics.observe('kl', klEstimate('k3', logprob, logprobsRef[i]!));
    metrics.observe('klK1', logprob - logprobsRef[i]!);
  });
}
