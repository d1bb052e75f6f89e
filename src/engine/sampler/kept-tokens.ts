// Which tokens survive top-k, top-p and min-p, in transformers' order. Only the values of one histogram bucket are
// ever sorted, so the cost is a few passes over the row whatever the settings are.

import { FARTHEST, negativeExp } from './negative-exp.js';

const BUCKETS = 1024;

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
  readonly #bucketMass = new Float64Array(BUCKETS);
  readonly #bucketCount = new Int32Array(BUCKETS);

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
  select(logits: Float32Array, offset: number, settings: CutSettings): void {
    const { topK, topP, minP } = settings;
    let top = Number.NEGATIVE_INFINITY;
    let bottom = Number.POSITIVE_INFINITY;
    const end = offset + this.vocabSize;
    for (let i = offset; i < end; i++) {
      const value = logits[i] as number;
      if (value > top) top = value;
      if (value < bottom) bottom = value;
    }
    const inverse = 1 / settings.temperature;
    // Farther down a weight is 0; a limit near the top also keeps the histogram fine.
    const floor = Math.max(bottom, top - FARTHEST * settings.temperature);
    const kept =
      topK > 0 && topK < this.vocabSize ? this.#kthLargest(logits, offset, topK, top, floor) : floor;
    this.#gather(logits, offset, top, Math.max(kept, floor), inverse);
    if (topP < 1) this.#cutNucleus(topP, top, inverse);
    if (minP > 0) this.#cutBelow(minP);
  }

  #gather(logits: Float32Array, offset: number, top: number, threshold: number, inverse: number): void {
    const { ids, weights, vocabSize } = this;
    const values = this.#values;
    let count = 0;
    let mass = 0;
    for (let id = 0; id < vocabSize; id++) {
      const value = logits[offset + id] as number;
      if (!(value >= threshold)) continue;
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

  /** The k-th largest logit, or `floor` when fewer than k lie above it. */
  #kthLargest(logits: Float32Array, offset: number, k: number, top: number, floor: number): number {
    const scale = bucketScale(top - floor);
    const counts = this.#bucketCount.fill(0);
    const end = offset + this.vocabSize;
    for (let i = offset; i < end; i++) {
      const value = logits[i] as number;
      if (!(value >= floor)) continue;
      const bucket = ((top - value) * scale) | 0;
      counts[bucket] = (counts[bucket] as number) + 1;
    }
    let above = 0;
    let bucket = 0;
    while (bucket < BUCKETS && above + (counts[bucket] as number) < k) above += counts[bucket++] as number;
    if (bucket === BUCKETS) return floor;
    const edge = this.#edge;
    let size = 0;
    for (let i = offset; i < end; i++) {
      const value = logits[i] as number;
      if (value >= floor && (((top - value) * scale) | 0) === bucket) edge[size++] = value;
    }
    return edge.subarray(0, size).sort()[size - (k - above)] as number;
  }

  #cutNucleus(topP: number, top: number, inverse: number): void {
    const { weights, count } = this;
    const values = this.#values;
    const masses = this.#bucketMass.fill(0);
    let lowest = top;
    for (let i = 0; i < count; i++) if ((values[i] as number) < lowest) lowest = values[i] as number;
    const scale = bucketScale(top - lowest);
    for (let i = 0; i < count; i++) {
      const bucket = ((top - (values[i] as number)) * scale) | 0;
      masses[bucket] = (masses[bucket] as number) + (weights[i] as number);
    }
    const target = topP * this.mass;
    let before = 0;
    let bucket = 0;
    while (bucket < BUCKETS - 1 && before + (masses[bucket] as number) < target)
      before += masses[bucket++] as number;

    const edge = this.#edge;
    let size = 0;
    for (let i = 0; i < count; i++)
      if ((((top - (values[i] as number)) * scale) | 0) === bucket) edge[size++] = values[i] as number;
    const sorted = edge.subarray(0, size).sort();
    let last = size - 1;
    for (; last >= 0 && before < target; last--)
      before += negativeExp((top - (sorted[last] as number)) * inverse);
    const threshold = size > 0 ? (sorted[last + 1] ?? Number.POSITIVE_INFINITY) : lowest;
    let ties = 0;
    for (let i = last + 1; i < size && sorted[i] === threshold; i++) ties++;
    this.#keep((i) => {
      const value = values[i] as number;
      return value > threshold || (value === threshold && ties-- > 0);
    });
  }

  #cutBelow(weight: number): void {
    this.#keep((i) => (this.weights[i] as number) >= weight);
  }

  #keep(stays: (i: number) => boolean): void {
    const { ids, weights } = this;
    const values = this.#values;
    let count = 0;
    let mass = 0;
    for (let i = 0; i < this.count; i++) {
      if (!stays(i)) continue;
      ids[count] = ids[i] as number;
      weights[count] = weights[i] as number;
      values[count] = values[i] as number;
      mass += weights[count] as number;
      count++;
    }
    this.count = count;
    this.mass = mass;
  }
}

/** Buckets per unit so that a distance of `range` falls into the last one. */
function bucketScale(range: number): number {
  return range > 0 ? (BUCKETS - 1) / range : 0;
}
