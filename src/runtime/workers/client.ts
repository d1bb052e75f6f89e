// A long-lived worker as its users see it: typed calls, and a new thread when the old one dies.

import { UnavailableError } from '../../errors.js';
import { type CallOptions, type Connection, connect, type ThreadOptions } from './connection.js';
import type { Methods } from './messages.js';
import { streamCall } from './stream.js';

/** Life after which a death counts as the first again. */
const HEALTHY_AFTER_MS = 60_000;

/** `failed`: died so often that it is not started again. */
export type WorkerState = 'ready' | 'restarting' | 'failed' | 'closed';

export interface WorkerOptions<Broadcast = never> {
  /** Nice value of the thread (Linux): 19 yields to everyone. */
  readonly niceness?: number;
  /** Limit of the thread's JavaScript heap. */
  readonly maxHeapMebibytes?: number;
  readonly closeTimeoutMs?: number;
  /** Start a new thread when this one dies (default). Calls that were running fail all the same. */
  readonly restart?: boolean;
  /** Pause before the first restart; doubled for each further one. */
  readonly backOffMs?: number;
  /** Deaths in a row after which the worker stays down. */
  readonly maxRestarts?: number;
  readonly onBroadcast?: (event: Broadcast) => void;
  /** Called when the state changes; `error` is the death that caused it. */
  readonly onState?: (state: WorkerState, error: Error | null) => void;
}

type Event<M extends Methods<M>, K extends keyof M> = M[K]['event'];

export interface WorkerClient<M extends Methods<M>> {
  readonly state: WorkerState;
  /**
   * Calls a method.
   * @throws what the method threw, with class, code and fields
   * @throws {UnavailableError} the worker died, restarts, failed or is closed
   */
  call<K extends keyof M & string>(
    method: K,
    params: M[K]['params'],
    options?: CallOptions<Event<M, K>>,
  ): Promise<M[K]['result']>;
  /** Calls a method and yields its events; leaving the loop early cancels it. */
  stream<K extends keyof M & string>(
    method: K,
    params: M[K]['params'],
    options?: Pick<CallOptions, 'signal' | 'transfer'>,
  ): AsyncGenerator<Event<M, K>, M[K]['result'], void>;
  /** Tells running calls to stop, lets the worker free what it holds and ends the thread. Idempotent. */
  close(): Promise<void>;
}

/**
 * Starts the worker of an entry such as `engine/worker` (see `serveWorker`) and waits until it is ready.
 * @param data  what its setup receives; cloned at every start
 * @throws what the setup threw; {UnavailableError} when the entry is not built or the thread died
 */
export async function startWorker<M extends Methods<M>, Broadcast = never>(
  entry: string,
  data: unknown,
  options: WorkerOptions<Broadcast> = {},
): Promise<WorkerClient<M>> {
  const { restart = true, backOffMs = 500, maxRestarts = 5 } = options;
  const thread: ThreadOptions = {
    data,
    niceness: options.niceness ?? 0,
    maxHeapMebibytes: options.maxHeapMebibytes,
    closeTimeoutMs: options.closeTimeoutMs ?? 10_000,
    onBroadcast: (event) => options.onBroadcast?.(event as Broadcast),
  };
  let connection: Connection;
  let state: WorkerState = 'ready';
  let lastError: Error | null = null;
  let deaths = 0;
  let timer: NodeJS.Timeout | undefined;
  let starting: Promise<void> | null = null;

  const enter = (next: WorkerState, error: Error | null) => {
    if (state === 'closed') return;
    state = next;
    lastError = error;
    options.onState?.(next, error);
  };

  function watch(opened: Connection): void {
    connection = opened;
    const since = performance.now();
    void opened.ended.then((error) => {
      if (error === null || state === 'closed') return;
      if (performance.now() - since >= HEALTHY_AFTER_MS) deaths = 0;
      died(error);
    });
  }

  function died(error: Error): void {
    deaths++;
    if (!restart || deaths > maxRestarts) {
      enter('failed', error);
      return;
    }
    enter('restarting', error);
    timer = setTimeout(
      () => {
        starting = again();
      },
      backOffMs * 2 ** (deaths - 1),
    );
  }

  async function again(): Promise<void> {
    try {
      const opened = await connect(entry, thread);
      if (state === 'closed') return await opened.close();
      watch(opened);
      enter('ready', null);
    } catch (error) {
      if (state !== 'closed') died(error as Error);
    }
  }

  async function call(method: string, params: unknown, callOptions: CallOptions): Promise<unknown> {
    if (state !== 'ready')
      throw new UnavailableError(`worker ${entry} is ${state}${lastError ? ` (${lastError.message})` : ''}`, {
        cause: lastError ?? undefined,
      });
    return connection.call(method, params, callOptions);
  }

  watch(await connect(entry, thread));
  const client: WorkerClient<M> = {
    get state() {
      return state;
    },
    call: (method, params, callOptions = {}) => call(method, params, callOptions as CallOptions),
    stream: (method, params, { signal, transfer } = {}) =>
      streamCall(
        (onEvent, aborted) =>
          call(method, params, { signal: aborted, onEvent: onEvent as (event: unknown) => void, transfer }),
        signal,
      ),
    async close() {
      enter('closed', null);
      clearTimeout(timer);
      await connection.close();
      await starting;
    },
  };
  return client;
}
