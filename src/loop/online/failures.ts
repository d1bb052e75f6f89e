// Rounds that failed: how many in a row, and what is told of them. What is away (the store, the search, the engine, a judge) is no failure of
// the loop's.

import { NonFiniteError } from '../../errors.js';
import { type Away, awayOf } from './away.js';
import type { LoopHouse } from './house.js';
import { SearchOutages } from './search-outages.js';

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
  /** When it began, in milliseconds since 1970, and when it was last met, by the clock of `performance`. */
  #since = 0;
  #metAt = 0;
  #rest = 1;
  #last: string | null = null;

  constructor(
    private readonly tell: LoopHouse['onFailure'],
    private readonly outages = new SearchOutages(),
  ) {}

  /** What went wrong in the last round; null: nothing did. */
  get last(): string | null {
    return this.#last;
  }

  /** What is away, by the round under way or else by the last that broke off; null: nothing, as far as is known. */
  get waitsFor(): string | null {
    return this.outages.waitsFor ?? this.#known?.waitsFor ?? null;
  }

  /** When that began, in milliseconds since 1970; null: nothing is away. */
  get since(): number | null {
    if (this.outages.waitsFor !== null) return this.outages.since;
    return this.#known === null ? null : this.#since;
  }

  /** What broke a round off, where somebody should look. */
  get alarm(): string | null {
    return this.#known?.isAlarm ? this.#known.waitsFor : null;
  }

  /** A round may last for hours: that searches work again is known from the first of them. */
  get #known(): Away | null {
    const isOver = this.#away?.what === 'searches' && this.outages.answeredAt > this.#metAt;
    return isOver ? null : this.#away;
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
      if (before?.what !== this.#away.what) {
        this.tell(error, doing);
        this.#since = (this.#away.what === 'searches' ? this.outages.since : null) ?? Date.now();
      }
      this.#metAt = performance.now();
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
