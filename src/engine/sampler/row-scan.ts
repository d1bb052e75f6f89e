// Single passes over one row of logits, f32 [V] at an offset. All sums are float64.

import type { TokenAlternative } from '../generator.js';
import { negativeExp } from './negative-exp.js';

/** Place in the row of the largest logit, the lowest one on a tie; 0 when no logit is a number. */
export function argMax(logits: Float32Array, offset: number, vocabSize: number): number {
  let best = Number.NEGATIVE_INFINITY;
  let place = offset;
  const end = offset + vocabSize;
  for (let i = offset; i < end; i++) {
    const value = logits[i] as number;
    if (value > best) {
      best = value;
      place = i;
    }
  }
  return place - offset;
}

/** log sum exp of the row; not finite when the row holds NaN or +Infinity, or nothing finite. */
export function logSumExp(logits: Float32Array, offset: number, vocabSize: number): number {
  const top = logits[offset + argMax(logits, offset, vocabSize)] as number;
  if (top === Number.NEGATIVE_INFINITY || Number.isNaN(top)) return Number.NaN;
  let sum = 0;
  for (let i = offset; i < offset + vocabSize; i++) sum += negativeExp(top - (logits[i] as number));
  return top + Math.log(sum);
}

/**
 * The `count` most likely tokens, best first, the lower id first on a tie.
 *
 * @param normaliser log sum exp of the row
 */
export function topAlternatives(
  logits: Float32Array,
  offset: number,
  vocabSize: number,
  normaliser: number,
  count: number,
): TokenAlternative[] {
  const size = Math.min(count, vocabSize);
  const ids = new Int32Array(size).fill(-1);
  const values = new Float64Array(size).fill(Number.NEGATIVE_INFINITY);
  let lowest = Number.NEGATIVE_INFINITY;
  for (let id = 0; id < vocabSize; id++) {
    const value = logits[offset + id] as number;
    if (!(value > lowest)) continue;
    let place = size - 1;
    for (; place > 0 && value > (values[place - 1] as number); place--) {
      values[place] = values[place - 1] as number;
      ids[place] = ids[place - 1] as number;
    }
    values[place] = value;
    ids[place] = id;
    lowest = values[size - 1] as number;
  }
  return Array.from(ids, (id, i) => ({
    id,
    logprob: Math.min(0, (values[i] as number) - normaliser),
  })).filter(({ id }) => id >= 0);
}
