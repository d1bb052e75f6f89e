// The caller's side of one worker thread, from its start to its end. It is not restarted here.

import { type Transferable, Worker } from 'node:worker_threads';
import { CancelledError, UnavailableError } from '../../errors.js';
import { workerEntry } from './entry.js';
import { decodeError } from './error-codec.js';
import type { FromWorker, ToWorker, WorkerStart } from './messages.js';
import { freeAtEnd, prepareLedger } from './thread-end.js';

export interface ThreadOptions {
  readonly data: unknown;
  /** Nice value of the thread (Linux). */
  readonly niceness: number;
  /** Limit of the thread's JavaScript heap; beyond it the thread dies, the process does not. */
  readonly maxHeapMebibytes: number | undefined;
  /** Time that a closing worker gets before it is stopped. */
  readonly closeTimeoutMs: number;
  readonly onBroadcast: (event: unknown) => void;
}

export interface CallOptions<Event = unknown> {
  /** Asks the worker to stop. The call still ends as the worker decides: with a result or an error. */
  readonly signal?: AbortSignal;
  readonly onEvent?: (event: Event) => void;
  /** Objects inside the parameters that move to the worker instead of being copied. */
  readonly transfer?: readonly Transferable[];
}

export interface Connection {
  call(method: string, params: unknown, options: CallOptions): Promise<unknown>;
  /** Settles when the thread has ended: with the reason, or null after `close`. */
  readonly ended: Promise<UnavailableError | null>;
  close(): Promise<void>;
}

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly onEvent: ((event: never) => void) | undefined;
}

/** Starts a thread and waits until it can be called. @throws what its setup threw, or {UnavailableError} */
export function connect(entry: string, options: ThreadOptions): Promise<Connection> {
  prepareLedger();
  const start: WorkerStart = { data: options.data, niceness: options.niceness };
  const worker = new Worker(workerEntry(entry), {
    workerData: start,
    name: entry,
    ...(options.maxHeapMebibytes === undefined
      ? {}
      : { resourceLimits: { maxOldGenerationSizeMb: options.maxHeapMebibytes } }),
  });
  freeAtEnd(worker);
  const pending = new Map<number, Pending>();
  let nextId = 0;
  let closing = false;
  let crash: Error | null = null;
  const send = (message: ToWorker, transfer?: readonly Transferable[]) =>
    worker.postMessage(message, transfer);

  const ended = new Promise<UnavailableError | null>((resolve) => {
    worker.on('error', (error) => (crash ??= error));
    worker.on('messageerror', (error) => {
      crash ??= error;
      void worker.terminate();
    });
    worker.on('exit', (code) => {
      const reason = closing ? 'was closed' : `ended: ${crash?.message ?? `exit code ${code}`}`;
      const error = new UnavailableError(`worker ${entry} ${reason}`, { cause: crash ?? undefined });
      for (const call of pending.values()) call.reject(error);
      pending.clear();
      resolve(closing ? null : error);
    });
  });

  function call(
    method: string,
    params: unknown,
    { signal, onEvent, transfer }: CallOptions,
  ): Promise<unknown> {
    if (signal?.aborted) return Promise.reject(new CancelledError('cancelled', { cause: signal.reason }));
    if (closing) return Promise.reject(new UnavailableError(`worker ${entry} was closed`));
    const id = nextId++;
    const cancel = () => send({ kind: 'cancel', id });
    return new Promise((resolve, reject) => {
      send({ kind: 'call', id, method, params }, transfer);
      pending.set(id, { resolve, reject, onEvent });
      signal?.addEventListener('abort', cancel, { once: true });
    }).finally(() => signal?.removeEventListener('abort', cancel));
  }

  async function close(): Promise<void> {
    if (!closing) {
      closing = true;
      send({ kind: 'close' });
    }
    const timer = setTimeout(() => void worker.terminate(), options.closeTimeoutMs);
    await ended;
    clearTimeout(timer);
  }

  return new Promise((resolve, reject) => {
    void ended.then((error) => reject(error));
    worker.on('message', (message: FromWorker) => {
      if (message.kind === 'ready') resolve({ call, ended, close });
      else if (message.kind === 'failed') reject(decodeError(message.error));
      else if (message.kind === 'broadcast') options.onBroadcast(message.event);
      else deliver(pending, message);
    });
  });
}

type Answer = Extract<FromWorker, { readonly id: number }>;

function deliver(pending: Map<number, Pending>, message: Answer): void {
  const call = pending.get(message.id);
  if (message.kind === 'event') {
    call?.onEvent?.(message.event as never);
    return;
  }
  pending.delete(message.id);
  if (message.kind === 'result') call?.resolve(message.result);
  else call?.reject(decodeError(message.error));
}
