// Truncated importance weights for the gap between the engine that samples and the trainer that learns.
//
//   w_t = min(exp(logpOld_t - logpEngine_t), cap), detached
//
// The papers assume one arithmetic; a quantised engine has another (see "Your efficient RL framework secretly brings
// you off-policy RL training", 2025, for the truncation). Token by token here, as the protocol says; verl's default takes
// the product over the sequence. Low weights are not raised: they only slow learning, high ones break it.

import { mean } from '../../../util/mean.js';
import { clampLogRatio } from './ratio.js';

/** @returns [n] */
export function importanceWeights(
  logprobsOld: Float64Array,
  logprobsEngine: Float64Array,
  cap: number,
): Float64Array {
  return logprobsOld.map((old, i) => Math.min(Math.exp(clampLogRatio(old - logprobsEngine[i]!)), cap));
}

/** One weight for the sequence, of the mean log ratio; for losses whose own ratio is the sequence's. */
export function sequenceImportanceWeights(
  logprobsOld: Float64Array,
  logprobsEngine: Float64Array,
  cap: number,
): Float64Array {
  if (logprobsOld.length === 0) return logprobsOld;
  const logRatio = mean(logprobsOld.map((old, i) => old - logprobsEngine[i]!));
  return new Float64Array(logprobsOld.length).fill(Math.min(Math.exp(clampLogRatio(logRatio)), cap));
}
