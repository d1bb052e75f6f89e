// Writes on their way to the disk, in order. While one group is being committed the next gathers, so a slow disk
// makes groups bigger instead of answers slower. What cannot be committed now is kept and tried again.

import { performance } from 'node:perf_hooks';
import * as errors from '../../errors.js';
import { UnavailableError } from '../../errors.js';
import { within } from '../../util/within.js';
import type { Write, WriteFault, WriteKind, WriteOutcome, Writes } from './messages.js';

export interface WriteQueueOptions {
  /** Commits a group; rejects when none of it is known to be committed. */
  readonly send: (writes: readonly Write[]) => Promise<readonly WriteOutcome[]>;
  /** Bytes that may wait; beyond them new writes are refused. */
  readonly maxBytes: number;
  /** Wait after which the store counts as slow. */
  readonly slowMs: number;
  /** Try again after a failure (a server); else the group fails (a command). */
  readonly retry: boolean;
  readonly retryDelayMs?: number;
}

export interface QueueHealth {
  /** Why writes do not get through as they should; null when they do. */
  readonly trouble: string | null;
  readonly waiting: number;
  readonly waitingBytes: number;
  /** Writes refused because too many were waiting. */
  readonly refused: number;
}

const GROUP_WRITES = 256;
const GROUP_BYTES = 4 << 20;
/** What a write takes beside what it carries, about. */
const SMALL = 1024;
const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 5000;

interface Waiting {
  readonly write: Write;
  readonly bytes: number;
  readonly since: number;
  readonly resolve: (result: never) => void;
  readonly reject: (error: Error) => void;
}

export class WriteQueue {
  /** Those of the group under way are still at the head. */
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #refused = 0;
  #failure: Error | null = null;
  #running: Promise<void> | null = null;
  #closed = false;
  #wake = (): void => {};

  constructor(private readonly options: WriteQueueOptions) {}

  /**
   * Resolves when it is committed and synced.
   * @param carried  bytes of texts and tokens
   * @throws {UnavailableError} too much is waiting, the queue was closed before it was committed, or (without
   *   `retry`) the store failed
   * @throws what the write itself did wrong
   */
  push<K extends WriteKind>(kind: K, params: Writes[K][0], carried = 0): Promise<Writes[K][1]> {
    const bytes = SMALL + carried;
    if (this.#closed) return Promise.reject(new UnavailableError('the store is closed'));
    if (this.#waitingBytes + bytes > this.options.maxBytes) {
      this.#refused += 1;
      const full = `${this.#waiting.length} writes (${this.#waitingBytes} bytes) wait for the store`;
      return Promise.reject(this.#unavailable(full));
    }
    return new Promise((resolve, reject) => {
      const write = { kind, params, at: Date.now() } as Write;
      this.#waiting.push({ write, bytes, since: performance.now(), resolve, reject });
      this.#waitingBytes += bytes;
      this.#running ??= this.#run();
    });
  }

  health(): QueueHealth {
    const oldestMs = this.#waiting[0] === undefined ? 0 : performance.now() - this.#waiting[0].since;
    const slow =
      oldestMs > this.options.slowMs ? `a write has been waiting for ${Math.round(oldestMs)} ms` : null;
    return {
      trouble: this.#failure?.message ?? slow,
      waiting: this.#waiting.length,
      waitingBytes: this.#waitingBytes,
      refused: this.#refused,
    };
  }

  /** Takes no more; what waits may still be committed for `graceMs`, the rest fails. */
  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    // A pause between two tries ends now: this is the last chance.
    this.#wake();
    await within(this.#running ?? Promise.resolve(), graceMs);
    this.#settle(this.#waiting.length, ({ reject }) =>
      reject(this.#unavailable('the store was closed before this was committed')),
    );
  }

  async #run(): Promise<void> {
    const { send, retry, retryDelayMs = FIRST_RETRY_MS } = this.options;
    // Those of one turn of the event loop go together.
    await new Promise<void>((resolve) => setImmediate(resolve));
    for (let delay = retryDelayMs; this.#waiting.length > 0; ) {
      const group = groupOf(this.#waiting);
      try {
        const outcomes = await send(group.map(({ write }) => write));
        this.#failure = null;
        delay = retryDelayMs;
        this.#settle(group.length, (item, index) => deliver(item, outcomes[index]));
      } catch (error) {
        this.#failure = error as Error;
        if (!retry) this.#settle(group.length, ({ reject }) => reject(error as Error));
        else await this.#pause(delay);
        delay = Math.min(2 * delay, LAST_RETRY_MS);
      }
    }
    this.#running = null;
  }

  #settle(count: number, each: (item: Waiting, index: number) => void): void {
    for (const [index, item] of this.#waiting.splice(0, count).entries()) {
      this.#waitingBytes -= item.bytes;
      each(item, index);
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #unavailable(message: string): UnavailableError {
    return new UnavailableError(message, { cause: this.#failure ?? undefined });
  }
}

function groupOf(waiting: readonly Waiting[]): Waiting[] {
  const group: Waiting[] = [];
  let bytes = 0;
  for (const item of waiting) {
    if (group.length === GROUP_WRITES || (group.length > 0 && bytes + item.bytes > GROUP_BYTES)) break;
    group.push(item);
    bytes += item.bytes;
  }
  return group;
}

function deliver({ resolve, reject }: Waiting, outcome: WriteOutcome | undefined): void {
  if (outcome?.ok) resolve(outcome.result as never);
  else
    reject(
      outcome === undefined ? new UnavailableError('the store lost a write') : faultError(outcome.fault),
    );
}

function faultError({ name, message, param }: WriteFault): Error {
  if (name === 'NotFoundError') return new errors.NotFoundError(message);
  if (name === 'ConflictError') return new errors.ConflictError(message);
  if (name === 'InvalidInputError') return new errors.InvalidInputError(message, param);
  return new errors.IntegrityError(`the store refused a write: ${message}`);
}
