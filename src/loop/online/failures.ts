// Rounds that failed: how many in a row, and what is told of them. A store that is away is no failure of the loop's.

import { NonFiniteError } from '../../errors.js';
import type { LoopHouse } from './house.js';
import { StoreAwayError } from './patient-store.js';

/** Rejected or failed steps in a row that pause the loop. */
const MOST_FAILURES = 3;

export class Failures {
  #inARow = 0;
  #isStoreAway = false;
  #last: string | null = null;

  constructor(private readonly tell: LoopHouse['onFailure']) {}

  /** What went wrong in the last round; null: nothing did. */
  get last(): string | null {
    return this.#last;
  }

  /** @returns why the loop has to pause; null: it may go on */
  add(error: Error, doing: string): string | null {
    this.#last = error.message;
    if (error instanceof StoreAwayError) {
      // Once for each time that it is away, however often one looks.
      if (!this.#isStoreAway) this.tell(error, doing);
      this.#isStoreAway = true;
      return null;
    }
    this.#inARow++;
    this.tell(error, doing);
    const kind = error instanceof NonFiniteError ? 'a step was rejected' : 'it failed';
    return this.#inARow < MOST_FAILURES
      ? null
      : `${kind} ${this.#inARow} times in a row, the last time: ${error.message}`;
  }

  /** A round went well. */
  clear(): void {
    this.forgive();
    this.#isStoreAway = false;
    this.#last = null;
  }

  storeIsBack(): void {
    if (this.#isStoreAway) this.#last = null;
    this.#isStoreAway = false;
  }

  /** Somebody has looked at it. */
  forgive(): void {
    this.#inARow = 0;
  }
}
