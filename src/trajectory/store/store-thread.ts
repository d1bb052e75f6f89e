// The store's worker thread.

import { UnavailableError } from '../../errors.js';
import { startWorker, type WorkerClient } from '../../runtime/index.js';
import type { StoreMethods, StoreWorkerData } from './messages.js';

const WORKER = 'trajectory/store/worker';
const RESTART_MS = 200;

export interface StoreThreadOptions {
  /** Told of what went wrong behind the scenes. */
  readonly onTrouble?: (error: Error) => void;
  /** Entry of the worker; tests put faults in between. */
  readonly worker?: string;
}

/** Started when it is first asked for, and again when it died too often to come back by itself. */
export class StoreThread {
  #starting: Promise<WorkerClient<StoreMethods>> | null = null;
  #closed = false;

  /** @param data  what a thread that starts begins with; read anew each time */
  constructor(
    private readonly data: StoreWorkerData,
    private readonly options: StoreThreadOptions,
  ) {}

  /** @throws {UnavailableError} it was closed, or cannot be started */
  async get(): Promise<WorkerClient<StoreMethods>> {
    if (this.#closed) throw new UnavailableError('the store is closed');
    this.#starting ??= this.#start();
    const current = this.#starting;
    try {
      const client = await current;
      if (client.state !== 'failed') return client;
    } catch (error) {
      if (this.#starting === current) this.#starting = null;
      throw error;
    }
    if (this.#starting === current) this.#starting = null;
    return this.get();
  }

  async close(): Promise<void> {
    this.#closed = true;
    const client = await this.#starting?.catch(() => null);
    await client?.close();
  }

  #start(): Promise<WorkerClient<StoreMethods>> {
    const { worker = WORKER, onTrouble } = this.options;
    return startWorker<StoreMethods>(worker, this.data, {
      backOffMs: RESTART_MS,
      onState: (_state, error) => {
        if (error !== null) onTrouble?.(error);
      },
    });
  }
}
