// The worker's side: answers calls until it is closed.

import { type MessagePort, parentPort, type Transferable, workerData } from 'node:worker_threads';
import { CancelledError, NotFoundError, UnavailableError } from '../../errors.js';
import { encodeError } from './error-codec.js';
import type { FromWorker, Methods, ToWorker, WorkerStart } from './messages.js';
import { setCurrentThreadPriority } from './priority.js';

export interface CallContext<Event> {
  /** Fires when the caller gives up or the worker is closed. */
  readonly signal: AbortSignal;
  /** Sends an event of this call to its caller. Objects in `transfer` move there. */
  emit(event: Event, transfer?: readonly Transferable[]): void;
}

export interface Service<M extends Methods<M>> {
  readonly methods: {
    readonly [K in keyof M]: (
      params: M[K]['params'],
      context: CallContext<M[K]['event']>,
    ) => Promise<M[K]['result']> | M[K]['result'];
  };
  /** Frees what the worker holds. Running calls were told to stop before; the thread ends after it. */
  close?(): void | Promise<void>;
}

const transfers = new WeakMap<object, readonly Transferable[]>();

/** Marks objects inside a result that shall move to the caller instead of being copied. */
export function transferring<T extends object>(result: T, objects: readonly Transferable[]): T {
  transfers.set(result, objects);
  return result;
}

/**
 * Makes this thread a worker: `setup` gets the data that `startWorker` was given and returns the methods.
 * Call it once, at the end of the entry file. A call that blocks the thread keeps cancellations and other calls
 * waiting: give way with `setImmediate` between pieces of work.
 * @param setup  may throw; the error reaches the caller of `startWorker` as it is
 */
export function serveWorker<M extends Methods<M>, Data = undefined, Broadcast = never>(
  setup: (data: Data, broadcast: (event: Broadcast) => void) => Promise<Service<M>> | Service<M>,
): void {
  const port = parentPort;
  if (port === null) throw new UnavailableError('serveWorker was called outside a worker thread');
  const send = (message: FromWorker, transfer: readonly Transferable[] = []) =>
    port.postMessage(message, transfer);
  const start = workerData as WorkerStart;
  if (start.niceness !== 0) setCurrentThreadPriority(start.niceness);
  Promise.resolve()
    .then(() => setup(start.data as Data, (event) => send({ kind: 'broadcast', event })))
    .then(
      (service) => {
        answer(port, service as unknown as AnyService, send);
        send({ kind: 'ready' });
      },
      (error) => {
        send({ kind: 'failed', error: encodeError(error) });
        process.exit(1);
      },
    );
}

type Send = (message: FromWorker, transfer?: readonly Transferable[]) => void;

interface AnyService {
  readonly methods: Readonly<Record<string, (params: unknown, context: CallContext<unknown>) => unknown>>;
  close?(): void | Promise<void>;
}

function answer(port: MessagePort, service: AnyService, send: Send): void {
  const running = new Map<number, AbortController>();

  async function run(id: number, method: string, params: unknown): Promise<void> {
    const controller = new AbortController();
    running.set(id, controller);
    try {
      if (!Object.hasOwn(service.methods, method))
        throw new NotFoundError(`the worker has no method "${method}"`);
      const result = await service.methods[method]?.(params, {
        signal: controller.signal,
        emit: (event, transfer) => send({ kind: 'event', id, event }, transfer),
      });
      const objects = typeof result === 'object' && result !== null ? transfers.get(result) : undefined;
      send({ kind: 'result', id, result }, objects);
    } catch (error) {
      send({ kind: 'error', id, error: encodeError(error) });
    } finally {
      running.delete(id);
    }
  }

  async function close(): Promise<void> {
    for (const controller of running.values()) controller.abort(new CancelledError('the worker is closing'));
    try {
      await service.close?.();
    } finally {
      // Ends this thread only, whatever timers or handles a room forgot. What was sent still arrives.
      process.exit(0);
    }
  }

  port.on('message', (message: ToWorker) => {
    if (message.kind === 'call') void run(message.id, message.method, message.params);
    else if (message.kind === 'cancel') running.get(message.id)?.abort(new CancelledError());
    else void close();
  });
}
