// A worker that starts with the first call that wants it, and again after it failed for good.

import { startWorker, type WorkerClient } from './client.js';
import type { Methods } from './messages.js';

export interface LazyWorker<M extends Methods<M>> {
  /** The worker; null where it cannot be had now: it did not start, or starts anew after it died. */
  client(): Promise<WorkerClient<M> | null>;
  /** Starts it, so that the first call need not wait. */
  warm(): void;
  close(): Promise<void>;
}

/**
 * @param data  what the worker's setup receives
 * @param onFailure  told why it did not start
 */
export function createLazyWorker<M extends Methods<M>>(
  entry: string,
  data: unknown,
  onFailure: (error: Error) => void,
): LazyWorker<M> {
  let starting: Promise<WorkerClient<M>> | null = null;
  let closed = false;

  const client = async (): Promise<WorkerClient<M> | null> => {
    if (closed) return null;
    starting ??= startWorker<M>(entry, data);
    const current = starting;
    try {
      const started = await current;
      // It died too often; the next call starts another.
      if (started.state === 'failed' && starting === current) starting = null;
      return started.state === 'ready' ? started : null;
    } catch (error) {
      if (starting === current) starting = null;
      onFailure(error as Error);
      return null;
    }
  };

  return {
    client,
    warm: () => void client(),
    async close() {
      closed = true;
      const started = await starting?.catch(() => null);
      await started?.close();
    },
  };
}
