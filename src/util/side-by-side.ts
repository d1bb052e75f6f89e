import { setMaxListeners } from 'node:events';

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
