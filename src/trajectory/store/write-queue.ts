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

export interface WriteQueue {
  /**
   * Resolves when it is committed and synced.
   * @throws {UnavailableError} too much is waiting, the queue was closed before it was committed, or (without
   *   `retry`) the store failed
   * @throws what the write itself did wrong
   */
  push<K extends WriteKind>(kind: K, params: Writes[K][0], bytes?: number): Promise<Writes[K][1]>;
  health(): QueueHealth;
  /** Takes no more; what waits may still be committed for `graceMs`, the rest fails. */
  close(graceMs: number): Promise<void>;
}

const GROUP_WRITES = 256;
const GROUP_BYTES = 4 << 20;
/** What a write without tokens takes, about. */
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

export function createWriteQueue(options: WriteQueueOptions): WriteQueue {
  const { send, maxBytes, slowMs, retry, retryDelayMs = FIRST_RETRY_MS } = options;
  /** Those of the group under way are still at the head. */
  const waiting: Waiting[] = [];
  let waitingBytes = 0;
  let refused = 0;
  let failure: Error | null = null;
  let running: Promise<void> | null = null;
  let closed = false;
  let wake = (): void => {};

  function settle(count: number, each: (item: Waiting, index: number) => void): void {
    for (const [index, item] of waiting.splice(0, count).entries()) {
      waitingBytes -= item.bytes;
      each(item, index);
    }
  }

  async function run(): Promise<void> {
    // Those of one turn of the event loop go together.
    await new Promise<void>((resolve) => setImmediate(resolve));
    for (let delay = retryDelayMs; waiting.length > 0; ) {
      const group = groupOf(waiting);
      try {
        const outcomes = await send(group.map(({ write }) => write));
        failure = null;
        delay = retryDelayMs;
        settle(group.length, (item, index) => deliver(item, outcomes[index]));
      } catch (error) {
        failure = error as Error;
        if (!retry) settle(group.length, ({ reject }) => reject(error as Error));
        else await pause(delay);
        delay = Math.min(2 * delay, LAST_RETRY_MS);
      }
    }
    running = null;
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  const oldestMs = (): number => (waiting[0] === undefined ? 0 : performance.now() - waiting[0].since);

  return {
    push(kind, params, bytes = SMALL) {
      if (closed) return Promise.reject(new UnavailableError('the store is closed'));
      if (waitingBytes + bytes > maxBytes) {
        refused += 1;
        return Promise.reject(
          new UnavailableError(`${waiting.length} writes (${waitingBytes} bytes) wait for the store`, {
            cause: failure ?? undefined,
          }),
        );
      }
      return new Promise((resolve, reject) => {
        const write = { kind, params, at: Date.now() } as Write;
        waiting.push({ write, bytes, since: performance.now(), resolve, reject });
        waitingBytes += bytes;
        running ??= run();
      });
    },
    health: () => ({
      trouble:
        failure?.message ??
        (oldestMs() > slowMs ? `a write has been waiting for ${Math.round(oldestMs())} ms` : null),
      waiting: waiting.length,
      waitingBytes,
      refused,
    }),
    async close(graceMs) {
      closed = true;
      // A pause between two tries ends now: this is the last chance.
      wake();
      await within(running ?? Promise.resolve(), graceMs);
      settle(waiting.length, ({ reject }) =>
        reject(
          new UnavailableError('the store was closed before this was committed', {
            cause: failure ?? undefined,
          }),
        ),
      );
    },
  };
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
