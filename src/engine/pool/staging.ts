// One slot in float32 in which prompts are read, where the pool itself keeps keys and values in 8 bits: attention over
// many new tokens is several times faster there. What a chunk leaves is rounded into the pool and put back rounded, so
// that the next chunk sees the same numbers whether or not another sequence used the slot meanwhile.

import type { KvMemory } from './kv-memory.js';

const LOWEST = -128;
const HIGHEST = 127;

/** A sequence, as far as staging goes. */
export interface Staged {
  /** Leading positions that the staging slot holds as long as it is this sequence's. */
  stagedLength: number;
}

export class Staging {
  #owner: Staged | null = null;

  /**
   * @param slot  one slot of the pool's shape
   * @param steps for each buffer f32 [kvHeads * headDim]: what 1 of the pool is worth in each channel
   */
  constructor(
    private readonly pool: KvMemory<Int8Array>,
    private readonly slot: KvMemory<Float32Array>,
    private readonly steps: readonly Float32Array[],
  ) {}

  /** Brings the first `length` positions of a sequence's slot here, as far as they are not here yet. */
  load(owner: Staged, slot: number, length: number): void {
    if (this.#owner !== owner) owner.stagedLength = 0;
    this.#owner = owner;
    const from = Math.min(owner.stagedLength, length);
    this.#each(slot, (rounded, exact, steps, pooled, staged) => {
      const { headDim } = this.pool.shape;
      for (let at = from * headDim; at < length * headDim; at += headDim)
        for (let channel = 0; channel < headDim; channel++)
          exact[staged + at + channel] =
            (rounded[pooled + at + channel] as number) * (steps[channel] as number);
    });
    owner.stagedLength = length;
  }

  /** Rounds `count` positions from `from` on, here and in the sequence's slot. */
  store(owner: Staged, slot: number, from: number, count: number): void {
    this.#each(slot, (rounded, exact, steps, pooled, staged) => {
      const { headDim } = this.pool.shape;
      const inverses = steps.map((step) => 1 / step);
      for (let at = from * headDim; at < (from + count) * headDim; at += headDim)
        for (let channel = 0; channel < headDim; channel++) {
          const place = staged + at + channel;
          const nearest = Math.round((exact[place] as number) * (inverses[channel] as number));
          const value = nearest > HIGHEST ? HIGHEST : nearest < LOWEST ? LOWEST : nearest;
          rounded[pooled + at + channel] = value;
          exact[place] = value * (steps[channel] as number);
        }
    });
    owner.stagedLength = from + count;
  }

  /** Calls for each head of each buffer; `pooled` and `staged` are where its positions begin. */
  #each(
    slot: number,
    act: (
      rounded: Int8Array,
      exact: Float32Array,
      steps: Float32Array,
      pooled: number,
      staged: number,
    ) => void,
  ): void {
    const { kvHeads, headDim, capacity } = this.pool.shape;
    const headSize = capacity * headDim;
    for (const [index, rounded] of this.pool.buffers.entries()) {
      const exact = this.slot.buffers[index] as Float32Array;
      const steps = this.steps[index] as Float32Array;
      for (let head = 0; head < kvHeads; head++)
        act(
          rounded,
          exact,
          steps.subarray(head * headDim, (head + 1) * headDim),
          (slot * kvHeads + head) * headSize,
          head * headSize,
        );
    }
  }
}
