import { setTimeout as sleep } from 'node:timers/promises';
import { CancelledError } from '../errors.js';

export interface RetryOptions {
  /** Further tries after the first. */
  readonly retries: number;
  /** Pause before the second try; twice as long before each further one. */
  readonly pauseMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Whether a later try may do better. Default: always. */
  readonly mayPass?: (error: unknown) => boolean;
  /** False: a pause does not keep the process alive. */
  readonly ref?: boolean;
}

/** Tries work again while it fails. @throws its last failure; {CancelledError} the signal fired */
export async function retried<Result>(work: () => Promise<Result>, options: RetryOptions): Promise<Result> {
  const { retries, pauseMs, signal, mayPass = () => true, ref } = options;
  for (let tries = 0; ; tries++) {
    if (signal?.aborted) throw new CancelledError();
    try {
      return await work();
    } catch (error) {
      if (signal?.aborted) throw new CancelledError();
      if (error instanceof CancelledError || tries >= retries || !mayPass(error)) throw error;
    }
    await sleep(pauseMs * 2 ** tries, undefined, { signal, ref }).catch(() => {
      throw new CancelledError();
    });
  }
}
