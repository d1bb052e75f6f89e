import { setMaxListeners } from 'node:events';
import { CancelledError } from '../errors.js';

export type Work = (stop: AbortSignal) => Promise<void>;

/**
 * Runs works side by side. With the first failure the others are told to stop; whatever comes of them, all have ended when it resolves or throws.
 * @param signal  stops all of them
 * @throws the failure that came first
 */
export async function sideBySide(works: readonly Work[], signal?: AbortSignal): Promise<void> {
  const failed = new AbortController();
  const stop = signal === undefined ? failed.signal : AbortSignal.any([signal, failed.signal]);
  // Each of the works listens to it, and to nothing for longer.
  setMaxListeners(0, stop);
  const running = works.map((work) => work(stop));
  try {
    await Promise.all(running);
  } catch (error) {
    failed.abort();
    await Promise.allSettled(running);
    throw error;
  }
}

/**
 * Works at the items in their order, so many at once.
 * @throws the failure that came first; {CancelledError} the signal fired
 */
export async function eachOf<Item>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item, at: number, stop: AbortSignal) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const entries = items.entries();
  const worker: Work = async (stop) => {
    for (const [at, item] of entries) {
      if (stop.aborted) return;
      await work(item, at, stop);
    }
  };
  await sideBySide(Array(Math.min(atOnce, items.length)).fill(worker), signal).catch((error: unknown) => {
    // However what was under way ended then.
    throw signal?.aborted ? new CancelledError() : error;
  });
  if (signal?.aborted) throw new CancelledError();
}
