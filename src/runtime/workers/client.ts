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
  const worker = new RestartingWorker<M, Broadcast>(entry, data, options);
  await worker.start();
  return worker;
}

class RestartingWorker<M extends Methods<M>, Broadcast> implements WorkerClient<M> {
  readonly #thread: ThreadOptions;
  #connection: Connection | null = null;
  #state: WorkerState = 'ready';
  #lastError: Error | null = null;
  #deaths = 0;
  #timer: NodeJS.Timeout | undefined;
  #restarting: Promise<void> | null = null;

  constructor(
    private readonly entry: string,
    data: unknown,
    private readonly options: WorkerOptions<Broadcast>,
  ) {
    this.#thread = {
      data,
      niceness: options.niceness ?? 0,
      maxHeapMebibytes: options.maxHeapMebibytes,
      closeTimeoutMs: options.closeTimeoutMs ?? 10_000,
      onBroadcast: (event) => options.onBroadcast?.(event as Broadcast),
    };
  }

  get state(): WorkerState {
    return this.#state;
  }

  async start(): Promise<void> {
    this.#watch(await connect(this.entry, this.#thread));
  }

  call<K extends keyof M & string>(
    method: K,
    params: M[K]['params'],
    options: CallOptions<Event<M, K>> = {},
  ): Promise<M[K]['result']> {
    return this.#call(method, params, options as CallOptions);
  }

  stream<K extends keyof M & string>(
    method: K,
    params: M[K]['params'],
    { signal, transfer }: Pick<CallOptions, 'signal' | 'transfer'> = {},
  ): AsyncGenerator<Event<M, K>, M[K]['result'], void> {
    return streamCall(
      (onEvent, aborted) =>
        this.#call(method, params, {
          signal: aborted,
          onEvent: onEvent as (event: unknown) => void,
          transfer,
        }),
      signal,
    );
  }

  async close(): Promise<void> {
    this.#enter('closed', null);
    clearTimeout(this.#timer);
    await this.#connection?.close();
    await this.#restarting;
  }

  async #call(method: string, params: unknown, options: CallOptions): Promise<unknown> {
    if (this.#state !== 'ready') {
      const because = this.#lastError === null ? '' : ` (${this.#lastError.message})`;
      throw new UnavailableError(`worker ${this.entry} is ${this.#state}${because}`, {
        cause: this.#lastError ?? undefined,
      });
    }
    return (this.#connection as Connection).call(method, params, options);
  }

  #enter(next: WorkerState, error: Error | null): void {
    if (this.#state === 'closed') return;
    this.#state = next;
    this.#lastError = error;
    this.options.onState?.(next, error);
  }

  #watch(opened: Connection): void {
    this.#connection = opened;
    const since = performance.now();
    void opened.ended.then((error) => {
      if (error === null || this.#state === 'closed') return;
      if (performance.now() - since >= HEALTHY_AFTER_MS) this.#deaths = 0;
      this.#died(error);
    });
  }

  #died(error: Error): void {
    const { restart = true, backOffMs = 500, maxRestarts = 5 } = this.options;
    this.#deaths++;
    if (!restart || this.#deaths > maxRestarts) {
      this.#enter('failed', error);
      return;
    }
    this.#enter('restarting', error);
    this.#timer = setTimeout(
      () => {
        this.#restarting = this.#again();
      },
      backOffMs * 2 ** (this.#deaths - 1),
    );
  }

  async #again(): Promise<void> {
    try {
      const opened = await connect(this.entry, this.#thread);
      if (this.#state === 'closed') return await opened.close();
      this.#watch(opened);
      this.#enter('ready', null);
    } catch (error) {
      if (this.#state !== 'closed') this.#died(error as Error);
    }
  }
}
