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
    this.#each(slot, Math.min(owner.stagedLength, length), length, scale);
    owner.stagedLength = length;
  }

  /** Rounds `count` positions from `from` on, here and in the sequence's slot. */
  store(owner: Staged, slot: number, from: number, count: number): void {
    this.#each(slot, from, from + count, round);
    owner.stagedLength = from + count;
  }

  /** Calls for positions `from` to `to` of each head of each buffer. */
  #each(
    slot: number,
    from: number,
    to: number,
    act: (rounded: Int8Array, exact: Float32Array, steps: Float32Array) => void,
  ): void {
    const { kvHeads, headDim, capacity } = this.pool.shape;
    for (const [index, rounded] of this.pool.buffers.entries()) {
      const exact = this.slot.buffers[index] as Float32Array;
      const steps = this.steps[index] as Float32Array;
      for (let head = 0; head < kvHeads; head++) {
        const [pooled, staged] = [(slot * kvHeads + head) * capacity, head * capacity];
        act(
          rounded.subarray((pooled + from) * headDim, (pooled + to) * headDim),
          exact.subarray((staged + from) * headDim, (staged + to) * headDim),
          steps.subarray(head * headDim, (head + 1) * headDim),
        );
      }
    }
  }
}

// Plain functions over whole positions: they touch millions of numbers for each chunk.

function scale(rounded: Int8Array, exact: Float32Array, steps: Float32Array): void {
  const width = steps.length;
  for (let at = 0; at < rounded.length; at += width)
    for (let channel = 0; channel < width; channel++)
      exact[at + channel] = (rounded[at + channel] as number) * (steps[channel] as number);
}

function round(rounded: Int8Array, exact: Float32Array, steps: Float32Array): void {
  const width = steps.length;
  const inverses = steps.map((step) => 1 / step);
  for (let at = 0; at < exact.length; at += width)
    for (let channel = 0; channel < width; channel++) {
      const wanted = (exact[at + channel] as number) * (inverses[channel] as number);
      const nearest = Math.trunc(wanted < 0 ? wanted - 0.5 : wanted + 0.5);
      const value = Math.max(LOWEST, Math.min(HIGHEST, nearest));
      rounded[at + channel] = value;
      exact[at + channel] = value * (steps[channel] as number);
    }
}
