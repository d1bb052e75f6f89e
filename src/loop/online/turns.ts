// Who works when: one thing at a time, orders before rounds that were asked for earlier, and a rest that ends where there is
// something to do.

import { setTimeout as sleep } from 'node:timers/promises';
import { OneAtATime } from '../../util/one-at-a-time.js';

export class Turns {
  readonly #closed = new AbortController();
  /** Ends what is going on. */
  #work = new AbortController();
  /** Orders that ended it and wait for their turn: rounds that come before them do nothing. */
  #interruptions = 0;
  #wake = new AbortController();
  readonly #turn = new OneAtATime();

  get isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** Fires with the close. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Of the round that began last. */
  get signal(): AbortSignal {
    return this.#work.signal;
  }

  /** Begins a round, in its turn. @returns whether it may work */
  begin(): boolean {
    if (this.isClosed || this.#interruptions > 0) return false;
    this.#work = new AbortController();
    return true;
  }

  /** Works when all that came before is done. */
  take<T>(work: () => Promise<T>): Promise<T> {
    return this.#turn.run(work);
  }

  /** Ends the round that is going on, and comes before those that wait. */
  async interrupt(order: () => Promise<void>): Promise<void> {
    this.#interruptions++;
    this.#work.abort();
    await this.take(order).finally(() => this.#interruptions--);
  }

  async rest(ms: number): Promise<void> {
    if (this.isClosed) return;
    // The close wakes too: a signal that depends on one which lives as long as the process may never be let go.
    this.#wake = new AbortController();
    await sleep(ms, undefined, { signal: this.#wake.signal, ref: false }).catch(() => {});
  }

  wake(): void {
    this.#wake.abort();
  }

  /** Ends the round and lets none begin. */
  close(): void {
    this.#closed.abort();
    this.#work.abort();
    this.wake();
  }

  /** Resolves when all who waited had their turn. */
  settled(): Promise<void> {
    return this.#turn.settled();
  }
}
