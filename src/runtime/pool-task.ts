// The worker's side of the pool: one task at a time.

import type { MessagePort } from 'node:worker_threads';
import { CancelledError } from '../errors.js';
import { type EncodedError, encodeError } from './workers/error-codec.js';
import { setCurrentThreadPriority } from './workers/priority.js';

/** What a thread of the pool receives. */
export interface TaskEnvelope {
  readonly task: unknown;
  readonly niceness: number;
  readonly port: MessagePort;
  /** One cell: 1 when the task shall stop. Seen without giving way to messages. */
  readonly cancelled: Int32Array;
}

export type FromTask =
  | { readonly kind: 'started' }
  | { readonly kind: 'progress'; readonly progress: unknown };

export type TaskOutcome =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: EncodedError };

export interface TaskContext<Progress> {
  /** Fires when the task shall stop, once the thread gives way to messages. */
  readonly signal: AbortSignal;
  /** @throws {CancelledError} when the task shall stop; works in a loop that never gives way */
  throwIfCancelled(): void;
  report(progress: Progress): void;
}

/** Makes a function the task of a pool's entry file: `export default poolTask(...)`. */
export function poolTask<Task, Result, Progress = never>(
  work: (task: Task, context: TaskContext<Progress>) => Promise<Result> | Result,
): (envelope: TaskEnvelope) => Promise<TaskOutcome> {
  let prepared = false;
  return async ({ task, niceness, port, cancelled }) => {
    if (!prepared && niceness !== 0) setCurrentThreadPriority(niceness);
    prepared = true;
    const controller = new AbortController();
    const send = (message: FromTask) => port.postMessage(message);
    port.on('message', () => controller.abort(new CancelledError()));
    send({ kind: 'started' });
    try {
      const result = await work(task as Task, {
        signal: controller.signal,
        throwIfCancelled() {
          if (Atomics.load(cancelled, 0) === 1) throw new CancelledError();
        },
        report: (progress) => send({ kind: 'progress', progress }),
      });
      return { ok: true, result };
    } catch (error) {
      return { ok: false, error: encodeError(error) };
    } finally {
      port.close();
    }
  };
}
