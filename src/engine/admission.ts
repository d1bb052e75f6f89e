// Who may hold a slot. Everybody else waits in line, and the line has an end.

import { CancelledError, OverloadedError } from '../errors.js';

interface Waiting {
  readonly enter: () => void;
  readonly reject: (error: Error) => void;
}

/** Share of the newest holding time in the running mean. */
const NEWEST_SHARE = 0.2;
/** Guess of a holding time before one was measured. */
const FIRST_GUESS_MS = 5_000;

export class Admission {
  #running = 0;
  readonly #waiting = new Set<Waiting>();
  #meanHoldMs: number | null = null;

  constructor(
    private readonly slots: number,
    private readonly queueLimit: number,
  ) {}

  get running(): number {
    return this.#running;
  }

  get queued(): number {
    return this.#waiting.size;
  }

  /**
   * Waits for a slot, first come first served. The returned function gives it back (once; later calls do nothing).
   * @throws {OverloadedError} `queueLimit` others wait already
   * @throws {CancelledError} the signal fired first
   */
  async enter(signal?: AbortSignal): Promise<() => void> {
    if (signal?.aborted) throw new CancelledError('cancelled', { cause: signal.reason });
    if (this.#running < this.slots) this.#running++;
    else await this.#wait(signal);
    const since = performance.now();
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#leave(performance.now() - since);
    };
  }

  /** Rejects everybody in line. */
  rejectWaiting(error: Error): void {
    for (const { reject } of [...this.#waiting]) reject(error);
  }

  /** Expected wait of one who would join the line now, from measured holding times; at least 1. */
  get retryAfterMs(): number {
    const perSlot = (this.#meanHoldMs ?? FIRST_GUESS_MS) / this.slots;
    return Math.max(1, Math.ceil(perSlot * (this.queued + 1)));
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    if (this.queued >= this.queueLimit)
      throw new OverloadedError(
        `all ${this.slots} sequences are in use and ${this.queued} requests wait; the limit is ${this.queueLimit}`,
        this.retryAfterMs,
      );
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => () => {
        this.#waiting.delete(waiting);
        signal?.removeEventListener('abort', cancel);
        act();
      };
      const waiting: Waiting = {
        enter: settle(resolve),
        reject: (error) => settle(() => reject(error))(),
      };
      const cancel = () => waiting.reject(new CancelledError('cancelled', { cause: signal?.reason }));
      signal?.addEventListener('abort', cancel, { once: true });
      this.#waiting.add(waiting);
    });
  }

  #leave(heldMs: number): void {
    const mean = this.#meanHoldMs ?? heldMs;
    this.#meanHoldMs = mean + NEWEST_SHARE * (heldMs - mean);
    const next = this.#waiting.values().next().value;
    // The slot passes on: `running` stays.
    if (next !== undefined) next.enter();
    else this.#running--;
  }
}
