// Background work in threads that yield to serving: one task a thread, so that ending one harms no other.

import { createRequire } from 'node:module';
import { MessageChannel, receiveMessageOnPort, type Worker } from 'node:worker_threads';
import type { Piscina } from 'piscina';
import { CancelledError, UnavailableError } from '../errors.js';
import type { FromTask, TaskEnvelope, TaskOutcome } from './pool-task.js';
import { workerEntry } from './workers/entry.js';
import { decodeError } from './workers/error-codec.js';
import { freeAtEnd, prepareLedger } from './workers/thread-end.js';

export interface PoolOptions {
  readonly threads: number;
  /** Nice value of the threads (Linux); 19, the default, yields to everyone. */
  readonly niceness?: number;
  /** Limit of a thread's JavaScript heap. A task beyond it fails; its thread is replaced. */
  readonly maxHeapMebibytes?: number;
  /** Time that a cancelled task gets before its thread is stopped. */
  readonly cancelGraceMs?: number;
}

export interface TaskOptions<Progress> {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

export interface TaskPool<Task, Result, Progress> {
  /**
   * Runs a task when a thread is free.
   * @throws what the task threw, with class, code and fields
   * @throws {CancelledError} the signal fired
   * @throws {UnavailableError} the task's thread died, or the pool is closed
   */
  run(task: Task, options?: TaskOptions<Progress>): Promise<Result>;
  /** Stops all threads; running tasks fail. */
  close(): Promise<void>;
}

/** @param entry  path below src/ without extension of a file whose default export is a `poolTask` */
export function startPool<Task, Result, Progress = never>(
  entry: string,
  { threads, niceness = 19, maxHeapMebibytes, cancelGraceMs = 30_000 }: PoolOptions,
): TaskPool<Task, Result, Progress> {
  // Only here: workers import this room too, and should start fast.
  const { Piscina } = createRequire(import.meta.url)('piscina') as typeof import('piscina');
  prepareLedger();
  const pool = new Piscina({
    filename: workerEntry(entry),
    // As many as at most: only then a dead thread is replaced while tasks wait.
    minThreads: threads,
    maxThreads: threads,
    concurrentTasksPerWorker: 1,
    // Threads that wait for a task must hear messages.
    atomics: 'disabled',
    ...(maxHeapMebibytes === undefined
      ? {}
      : { resourceLimits: { maxOldGenerationSizeMb: maxHeapMebibytes } }),
  });
  const alive = new Set<Worker>();
  pool.on('workerCreate', ({ id }: { id: number }) => {
    const worker = pool.threads.find((thread) => thread.threadId === id);
    if (worker === undefined) return;
    freeAtEnd(worker);
    alive.add(worker);
    worker.once('exit', () => alive.delete(worker));
  });
  /** Ends every task: the entry cannot be loaded, or the pool closes. */
  const all = new AbortController();
  // An idle thread that dies is replaced; one that cannot even start is not.
  pool.on('error', (error: Error) => {
    if (pool.threads.length === 0) all.abort(lost(entry, error));
  });

  return {
    async run(task, options = {}) {
      all.signal.throwIfAborted();
      const outcome = await runTask(pool, all.signal, task, niceness, cancelGraceMs, options).catch(
        (error) => {
          throw options.signal?.aborted
            ? new CancelledError('cancelled', { cause: error })
            : lost(entry, error);
        },
      );
      if (!outcome.ok) throw decodeError(outcome.error);
      return outcome.result as Result;
    },
    async close() {
      all.abort(new UnavailableError(`the pool of ${entry} was closed`));
      await pool.destroy();
      // Also those that piscina stopped without waiting.
      await Promise.all(Array.from(alive, (worker) => worker.terminate()));
    },
  };
}

const lost = (entry: string, error: Error): UnavailableError =>
  error instanceof UnavailableError
    ? error
    : new UnavailableError(`a thread of ${entry} died: ${error.message}`, { cause: error });

async function runTask<Progress>(
  pool: Piscina,
  poolEnded: AbortSignal,
  task: unknown,
  niceness: number,
  cancelGraceMs: number,
  { signal, onProgress }: TaskOptions<Progress>,
): Promise<TaskOutcome> {
  if (signal?.aborted) throw new CancelledError();
  const { port1, port2 } = new MessageChannel();
  const cancelled = new Int32Array(new SharedArrayBuffer(4));
  /** Takes the task out of the queue, or stops its thread. */
  const hard = new AbortController();
  let started = false;
  let grace: NodeJS.Timeout | undefined;
  const receive = (message: FromTask) => {
    if (message.kind === 'started') started = true;
    else onProgress?.(message.progress as Progress);
  };
  const cancel = () => {
    Atomics.store(cancelled, 0, 1);
    port1.postMessage('cancel');
    if (started) grace = setTimeout(() => hard.abort(), cancelGraceMs);
    else hard.abort();
  };
  const end = () => hard.abort(poolEnded.reason);
  port1.on('message', receive);
  port1.unref();
  signal?.addEventListener('abort', cancel, { once: true });
  poolEnded.addEventListener('abort', end, { once: true });
  try {
    const envelope: TaskEnvelope = { task, niceness, port: port2, cancelled };
    const outcome = await pool.run(envelope, { transferList: [port2], signal: hard.signal });
    // Progress that is still on its way comes before the result.
    for (let item = receiveMessageOnPort(port1); item; item = receiveMessageOnPort(port1))
      receive(item.message);
    return outcome;
  } catch (error) {
    throw poolEnded.aborted ? poolEnded.reason : error;
  } finally {
    clearTimeout(grace);
    signal?.removeEventListener('abort', cancel);
    poolEnded.removeEventListener('abort', end);
    port1.close();
  }
}
