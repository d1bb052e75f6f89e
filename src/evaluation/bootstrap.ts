// Uncertainty of means over questions by resampling questions with replacement; percentile intervals.

import { InvalidInputError } from '../errors.js';
import { mean } from '../util/mean.js';
import { splitMix32 } from './random.js';

const { floor } = Math;

export interface ResamplingOptions {
  readonly resamples: number;
  readonly seed: number;
}

export const DEFAULT_RESAMPLING: ResamplingOptions = { resamples: 2000, seed: 0 };

export interface Interval {
  readonly mean: number;
  /** 2.5 % and 97.5 % quantiles of the resampled means. */
  readonly low: number;
  readonly high: number;
}

export interface PairedDifference extends Interval {
  /** Share of resamples in which the first mean is above the second. */
  readonly firstBetter: number;
}

/** Mean of values with its 95 % interval; all NaN where there is no value. */
export function meanInterval(values: readonly number[], options = DEFAULT_RESAMPLING): Interval {
  const means = resampledMeans(values, options);
  return { mean: mean(values), ...interval(means) };
}

/**
 * Mean of a - b over the same questions with its 95 % interval, questions resampled in pairs.
 * @throws {InvalidInputError} the two differ in length
 */
export function pairedDifference(
  a: readonly number[],
  b: readonly number[],
  options = DEFAULT_RESAMPLING,
): PairedDifference {
  if (a.length !== b.length)
    throw new InvalidInputError(`expected two lists of one length, got ${a.length} and ${b.length} values`);
  const differences = a.map((value, i) => value - (b[i] as number));
  const means = resampledMeans(differences, options);
  const better = means.reduce((count, value) => count + (value > 0 ? 1 : 0), 0);
  return { mean: mean(differences), ...interval(means), firstBetter: better / means.length };
}

/** Means of resamples, ascending. */
function resampledMeans(values: readonly number[], { resamples, seed }: ResamplingOptions): Float64Array {
  const random = splitMix32(seed);
  const data = Float64Array.from(values);
  const n = data.length;
  const means = new Float64Array(resamples);
  for (let r = 0; r < resamples; r++) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += data[floor(random() * n)] as number;
    means[r] = sum / n;
  }
  return means.sort();
}

function interval(sorted: Float64Array): { readonly low: number; readonly high: number } {
  return { low: quantile(sorted, 0.025), high: quantile(sorted, 0.975) };
}

/** With linear interpolation between neighbours. */
function quantile(sorted: Float64Array, share: number): number {
  const place = share * (sorted.length - 1);
  const below = floor(place);
  const low = sorted[below] as number;
  const high = sorted[Math.min(below + 1, sorted.length - 1)] as number;
  return low + (high - low) * (place - below);
}
