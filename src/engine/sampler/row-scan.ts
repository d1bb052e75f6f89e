// Single passes over one row of logits, f32 [V] at an offset. All sums are float64.

import type { TokenAlternative } from '../generator.js';
import { sumOfExp } from './negative-exp.js';

/** Rows are read as the integers that their bits make: ordered alike for numbers of at least 0, and faster to compare. */
const bitsOf = new WeakMap<ArrayBufferLike, Int32Array>();

function bitsView(logits: Float32Array): Int32Array {
  let bits = bitsOf.get(logits.buffer);
  if (bits === undefined) {
    bits = new Int32Array(logits.buffer, 0, logits.buffer.byteLength >> 2);
    bitsOf.set(logits.buffer, bits);
  }
  return bits;
}

/** Place in the row of the largest logit, the lowest one on a tie. The row must hold no NaN; see {@link logSumExp}. */
export function argMax(logits: Float32Array, offset: number, vocabSize: number): number {
  const bits = bitsView(logits);
  const start = logits.byteOffset / 4 + offset;
  const end = start + vocabSize;
  let best = -1;
  let place = -1;
  let i = start;
  for (; i + 3 < end; i += 4)
    if (
      (bits[i] as number) > best ||
      (bits[i + 1] as number) > best ||
      (bits[i + 2] as number) > best ||
      (bits[i + 3] as number) > best
    )
      for (let at = i; at < i + 4; at++)
        if ((bits[at] as number) > best) {
          best = bits[at] as number;
          place = at;
        }
  for (; i < end; i++)
    if ((bits[i] as number) > best) {
      best = bits[i] as number;
      place = i;
    }
  // Bits of negative numbers are negative integers, in reversed order.
  return place >= 0 ? place - start : largestNegative(logits, offset, vocabSize);
}

function largestNegative(logits: Float32Array, offset: number, vocabSize: number): number {
  let best = Number.NEGATIVE_INFINITY;
  let place = 0;
  for (let id = 0; id < vocabSize; id++)
    if ((logits[offset + id] as number) > best) {
      best = logits[offset + id] as number;
      place = id;
    }
  return place;
}

/** log sum exp of the row; not finite when the row holds NaN or +Infinity, or nothing finite. */
export function logSumExp(logits: Float32Array, offset: number, vocabSize: number): number {
  const top = logits[offset + argMax(logits, offset, vocabSize)] as number;
  if (!Number.isFinite(top)) return Number.NaN;
  return top + Math.log(sumOfExp(logits, offset, offset + vocabSize, top, 1));
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
