// Rounds that failed: how many in a row, and what is told of them. What is away (the store, the search, the engine, a judge) is no failure of
// the loop's.

import { NonFiniteError } from '../../errors.js';
import { type Away, awayOf } from './away.js';
import type { LoopHouse } from './house.js';

/** Rejected or failed steps in a row that pause the loop. */
const MOST_FAILURES = 3;
/** Of `loop.pollMs`. A step has waited for searches for a minute; a judge may be paid for each try, though it breaks off. */
const LONGEST_REST: Readonly<Record<Away['what'], number>> = {
  store: 1,
  searches: 16,
  engine: 16,
  scorer: 256,
  signal: 256,
};

export class Failures {
  #inARow = 0;
  #away: Away | null = null;
  #rest = 1;
  #last: string | null = null;

  constructor(private readonly tell: LoopHouse['onFailure']) {}

  /** What went wrong in the last round; null: nothing did. */
  get last(): string | null {
    return this.#last;
  }

  /** What is away; null: nothing, as far as is known. */
  get waitsFor(): string | null {
    return this.#away?.waitsFor ?? null;
  }

  /** The same, where somebody should look. */
  get alarm(): string | null {
    return this.#away?.isAlarm ? this.#away.waitsFor : null;
  }

  /** Before the next round, in `loop.pollMs`: a step that is made anew costs more than a look at the store. */
  get rest(): number {
    return this.#rest;
  }

  /** @returns why the loop has to pause; null: it may go on */
  add(error: Error, doing: string): string | null {
    this.#last = error.message;
    const before = this.#away;
    this.#away = awayOf(error);
    if (this.#away !== null) {
      // Once for each time that it is away, however often one looks.
      if (before?.what !== this.#away.what) this.tell(error, doing);
      this.#rest = Math.min(2 * this.#rest, LONGEST_REST[this.#away.what]);
      return null;
    }
    this.#rest = 1;
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
    this.#back();
    this.#last = null;
  }

  storeIsBack(): void {
    if (this.#away?.what !== 'store') return;
    this.#back();
    this.#last = null;
  }

  /** Somebody has looked at it. */
  forgive(): void {
    this.#inARow = 0;
  }

  #back(): void {
    this.#away = null;
    this.#rest = 1;
  }
}
