// Which tokens survive top-k, top-p and min-p, in transformers' order. Only the values of one histogram bucket are
// ever sorted, and weights are computed only where they are needed, so the cost is a few passes over the row.

import { bucketsOfExp, FARTHEST, negativeExp } from './negative-exp.js';
import { argMax } from './row-scan.js';

/** Buckets a nat (of logit divided by temperature, or of logit for top-k). */
const PER_NAT = 32;
const BUCKETS = FARTHEST * PER_NAT + 1;

export interface CutSettings {
  /** Above 0. */
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
}

/** Scratch space for one vocabulary size; `ids`, `weights` and `count` hold the result of the last call. */
export class KeptTokens {
  /** Surviving token ids, ascending. */
  readonly ids: Int32Array;
  /** exp((logit - top) / temperature) of each survivor. */
  readonly weights: Float64Array;
  count = 0;
  /** Sum of the survivors' weights. */
  mass = 0;

  readonly #values: Float32Array;
  readonly #edge: Float32Array;
  readonly #masses = new Float64Array(BUCKETS);
  readonly #counts = new Int32Array(BUCKETS);
  #top = 0;
  #inverse = 1;

  constructor(private readonly vocabSize: number) {
    this.ids = new Int32Array(vocabSize);
    this.weights = new Float64Array(vocabSize);
    this.#values = new Float32Array(vocabSize);
    this.#edge = new Float32Array(vocabSize);
  }

  /**
   * softmax(logits / temperature), then top-k (everything as large as the k-th value stays), then top-p (a token stays
   * while the more likely ones sum to less than top-p; on a tie the lower id is the more likely), then min-p
   * (at least min-p times the top probability stays). The most likely token always stays;
   * what lies over 64 nats below it (a share of 1e-28) is left out whatever the settings.
   */
  select(logits: Float32Array, offset: number, { temperature, topK, topP, minP }: CutSettings): void {
    this.#top = logits[offset + argMax(logits, offset, this.vocabSize)] as number;
    this.#inverse = 1 / temperature;
    let threshold = this.#top - FARTHEST * temperature;
    if (topK > 0 && topK < this.vocabSize) {
      threshold = Math.max(threshold, this.#kthLargest(logits, offset, topK));
      this.#gather(logits, offset, threshold);
      if (topP < 1) this.#cutNucleus(this.#values, 0, this.count, topP);
    } else if (topP < 1) {
      this.#cutNucleus(logits, offset, this.vocabSize, topP);
    } else {
      // Below min-p, with room for the rounding of the logarithm; the exact cut follows.
      this.#gather(logits, offset, Math.max(threshold, this.#top + temperature * (Math.log(minP) - 1e-6)));
    }
    if (minP > 0) this.#cutBelow(minP);
  }

  /** Takes every logit of at least `threshold`. */
  #gather(logits: Float32Array, offset: number, threshold: number): void {
    const { ids, weights, vocabSize } = this;
    const values = this.#values;
    const top = this.#top;
    const inverse = this.#inverse;
    let count = 0;
    let mass = 0;
    for (let id = 0; id < vocabSize; id++) {
      const value = logits[offset + id] as number;
      if (value < threshold) continue;
      const weight = negativeExp((top - value) * inverse);
      ids[count] = id;
      values[count] = value;
      weights[count] = weight;
      mass += weight;
      count++;
    }
    this.count = count;
    this.mass = mass;
  }

  #kthLargest(logits: Float32Array, offset: number, k: number): number {
    const top = this.#top;
    const counts = this.#counts.fill(0);
    const end = offset + this.vocabSize;
    const last = BUCKETS - 1;
    for (let i = offset; i < end; i++) {
      const distance = (top - (logits[i] as number)) * PER_NAT;
      const bucket = distance < last ? distance | 0 : last;
      counts[bucket] = (counts[bucket] as number) + 1;
    }
    let above = 0;
    let bucket = 0;
    while (above + (counts[bucket] as number) < k) above += counts[bucket++] as number;
    const edge = this.#edge;
    let size = 0;
    for (let i = offset; i < end; i++) {
      const value = logits[i] as number;
      const distance = (top - value) * PER_NAT;
      if ((distance < last ? distance | 0 : last) === bucket) edge[size++] = value;
    }
    return edge.subarray(0, size).sort()[size - (k - above)] as number;
  }

  /**
   * Keeps the nucleus of `count` candidates in `values` from `offset` on: all of a row, or those gathered before.
   */
  #cutNucleus(values: Float32Array, offset: number, count: number, topP: number): void {
    const top = this.#top;
    const inverse = this.#inverse;
    const masses = this.#masses.fill(0);
    const total = bucketsOfExp(values, offset, offset + count, top, inverse, PER_NAT, masses);
    const target = topP * total;
    let before = 0;
    let bucket = 0;
    while (bucket < BUCKETS - 1 && before + (masses[bucket] as number) < target)
      before += masses[bucket++] as number;
    const edge = this.#edge;
    let size = 0;
    // A little below the bucket, so that rounding cannot lose one of its values.
    const lowest = top - ((bucket + 1) / PER_NAT + 1e-6) / inverse;
    for (let i = offset; i < offset + count; i++) {
      const value = values[i] as number;
      if (value < lowest) continue;
      if ((((top - value) * inverse * PER_NAT) | 0) === bucket) edge[size++] = value;
    }
    const sorted = edge.subarray(0, size).sort();
    let next = size;
    while (next > 0 && before < target) before += negativeExp((top - (sorted[--next] as number)) * inverse);
    const threshold = next < size ? (sorted[next] as number) : lowest;
    let ties = 0;
    while (next + ties < size && sorted[next + ties] === threshold) ties++;
    if (values === this.#values) this.#cutBelowValue(threshold, ties);
    else {
      this.#gather(values, offset, threshold);
      this.#cutBelowValue(threshold, ties);
    }
  }

  /** Keeps what is larger than `threshold`, and of what equals it the first `ties`. */
  #cutBelowValue(threshold: number, ties: number): void {
    const values = this.#values;
    let left = ties;
    let kept = 0;
    let mass = 0;
    for (let i = 0; i < this.count; i++) {
      const value = values[i] as number;
      if (value < threshold || (value === threshold && left-- <= 0)) continue;
      mass += this.#move(i, kept++);
    }
    this.count = kept;
    this.mass = mass;
  }

  #cutBelow(weight: number): void {
    let kept = 0;
    let mass = 0;
    for (let i = 0; i < this.count; i++)
      if ((this.weights[i] as number) >= weight) mass += this.#move(i, kept++);
    this.count = kept;
    this.mass = mass;
  }

  #move(from: number, to: number): number {
    const weight = this.weights[from] as number;
    this.ids[to] = this.ids[from] as number;
    this.#values[to] = this.#values[from] as number;
    this.weights[to] = weight;
    return weight;
  }
}
