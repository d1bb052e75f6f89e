// A sequence as the engine's worker sees it.

import type { Resident } from '../pool/slot-pool.js';
import type { Staged } from '../pool/staging.js';
import { TokenCounts } from '../sampler/penalties.js';
import { MOST_UNREAD_STEPS, type RunningTurn } from './running-turn.js';

const FIRST_CAPACITY = 256;

export class Sequence implements Resident, Staged {
  tokens: Int32Array = new Int32Array(FIRST_CAPACITY);
  /** Tokens so far: appended and sampled. */
  length = 0;
  /** Leading tokens whose keys and values are in the slot. */
  kvLength = 0;
  alignedLength = 0;
  stagedLength = 0;
  /** -1 until the first prefill. */
  slot = -1;
  turn: RunningTurn | null = null;
  /** 1 for sampled tokens, 0 for appended ones. */
  #sampled: Uint8Array = new Uint8Array(FIRST_CAPACITY);

  constructor(
    readonly id: number,
    readonly version: string,
    readonly seed: number,
    readonly maxLength: number,
    /** Slot asked for in lock-step mode. */
    readonly wantedSlot: number | null,
  ) {}

  /** Tokens that the model has not read yet. */
  get pending(): number {
    return this.length - this.kvLength;
  }

  /** Whether it takes part in the next decode step. */
  get isReady(): boolean {
    return this.turn !== null && this.pending === 1 && this.turn.unread < MOST_UNREAD_STEPS;
  }

  append(ids: ArrayLike<number>): void {
    this.#reserve(this.length + ids.length);
    this.tokens.set(ids, this.length);
    this.#sampled.fill(0, this.length, this.length + ids.length);
    this.length += ids.length;
  }

  pushSampled(id: number): void {
    this.#reserve(this.length + 1);
    this.tokens[this.length] = id;
    this.#sampled[this.length] = 1;
    this.length++;
  }

  /** Forgets tokens beyond `length`, as if they had never been sampled. The last one left will be read again. */
  truncate(length: number): void {
    this.length = Math.min(this.length, length);
    this.kvLength = Math.min(this.kvLength, Math.max(0, this.length - 1));
    this.alignedLength = Math.min(this.alignedLength, this.kvLength);
    this.stagedLength = Math.min(this.stagedLength, this.kvLength);
  }

  counts(): TokenCounts {
    const counts = new TokenCounts();
    for (let i = 0; i < this.length; i++) counts.add(this.tokens[i] as number, this.#sampled[i] === 1);
    return counts;
  }

  #reserve(length: number): void {
    if (length <= this.tokens.length) return;
    const capacity = Math.max(length, 2 * this.tokens.length);
    const tokens = new Int32Array(capacity);
    tokens.set(this.tokens);
    this.tokens = tokens;
    const sampled = new Uint8Array(capacity);
    sampled.set(this.#sampled);
    this.#sampled = sampled;
  }
}
