// What a step of an int8 cache is worth, found from float32 caches of sample text.

/** A cache of one layer's keys or values: f32 [slots, kvHeads, capacity, headDim]. */
export interface CacheSample {
  readonly data: Float32Array;
  readonly kvHeads: number;
  readonly capacity: number;
  readonly headDim: number;
  /** Positions that the first slot holds. */
  readonly length: number;
  /**
   * Keys: their channels c and c + headDim / 2 are a pair that turns with the position, so that each may come to hold
   * what the sample has in both.
   */
  readonly rotated: boolean;
}

const LARGEST = 127;

/** A channel that was never used still needs a step. */
const SMALLEST_MAGNITUDE = 1e-3;

/**
 * step[c] = margin * max over positions of |cache[c]| / 127, for each channel c of the first slot; in place of |cache[c]|
 * the length of the channel's pair where pairs turn.
 * @param margin  how far beyond the sample's largest magnitudes a cache reaches before it cuts
 * @returns f32 [kvHeads * headDim]
 */
export function cacheSteps(sample: CacheSample, margin = 1.5): Float32Array {
  const { data, kvHeads, capacity, headDim, length, rotated } = sample;
  const steps = new Float32Array(kvHeads * headDim).fill(SMALLEST_MAGNITUDE);
  const half = headDim / 2;
  for (let head = 0; head < kvHeads; head++)
    for (let at = 0; at < length * headDim; at++) {
      const channel = at % headDim;
      const place = head * capacity * headDim + at;
      const other = rotated ? data[place + (channel < half ? half : -half)]! : 0;
      const into = head * headDim + channel;
      steps[into] = Math.max(steps[into]!, Math.hypot(data[place]!, other));
    }
  return steps.map((magnitude) => (magnitude * margin) / LARGEST);
}
