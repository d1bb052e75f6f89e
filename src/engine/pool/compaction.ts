// Decode runs over a window of slots that lie side by side. A slot in it that does not decode (a sequence whose search
// is running, one still in prefill, one that ended) is a hole: it costs a row of every step. Closing it costs a copy of
// keys and values. Which is cheaper is not known ahead, so, as with renting or buying skis, a hole is paid for until
// the payments add up to the price of the copy: never more than twice the best choice in hindsight.

import type { Window } from './slot-pool.js';

/** Tokens whose keys and values are copied in about the time that one row adds to a decode step. */
const TOKENS_PER_ROW_STEP = 128;

export interface Move {
  /** Slot at the edge of the window whose sequence moves. */
  readonly from: number;
  /** Hole that it moves into. */
  readonly to: number;
}

/** Sets `window` to the smallest one around the decoding slots and returns how many decode. */
export function windowOf(decodes: ArrayLike<number>, window: Window): number {
  window.first = 0;
  window.last = -1;
  let count = 0;
  for (let slot = 0; slot < decodes.length; slot++) {
    if (decodes[slot] === 0) continue;
    if (count++ === 0) window.first = slot;
    window.last = slot;
  }
  return count;
}

/** Decides step by step whether a hole is worth closing. */
export class Compaction {
  #paid = 0;

  /**
   * To be asked once before each decode step.
   *
   * @param decodes    1 for every slot that decodes in this step
   * @param keptLength positions of a slot that a move has to copy
   */
  next(
    decodes: ArrayLike<number>,
    window: Window,
    count: number,
    keptLength: (slot: number) => number,
  ): Move | null {
    const holes = window.last - window.first + 1 - count;
    if (holes <= 0) {
      this.#paid = 0;
      return null;
    }
    this.#paid += holes;
    let best: Move | null = null;
    let price = Number.POSITIVE_INFINITY;
    for (let to = window.first + 1; to < window.last; to++) {
      if (decodes[to] !== 0) continue;
      for (const from of [window.first, window.last]) {
        const tokens = keptLength(from) + keptLength(to);
        if (tokens < price) [best, price] = [{ from, to }, tokens];
      }
    }
    if (this.#paid * TOKENS_PER_ROW_STEP < price) return null;
    this.#paid = 0;
    return best;
  }
}
