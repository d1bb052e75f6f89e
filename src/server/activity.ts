// Work in flight, so that a stop can wait for it and then end it.

import { CancelledError } from '../errors.js';
import { within } from '../util/within.js';
import { RequestError } from './openai/request-error.js';

/** What a stop does to work: most may use the grace; `abort` is for work that would outlast it. */
export type AtStop = 'finish' | 'abort';

export interface Work {
  /** Fires when the client is gone or the server stops; its reason is the error to answer with. */
  readonly signal: AbortSignal;
  /** The client went away or asked to stop. No-op when the work has ended. */
  cancel(): void;
  end(): void;
}

export interface Activity {
  readonly stopping: boolean;
  readonly size: number;
  /** @throws {RequestError} 503 once the server is stopping */
  begin(atStop?: AtStop): Work;
  /** Refuses new work and resolves when none is left; after `graceMs` what is left is aborted. */
  stop(graceMs: number): Promise<void>;
}

/** Time for aborted work to send its last words. */
const LAST_WORDS_MS = 1000;

export function createActivity(): Activity {
  const running = new Map<AbortController, AtStop>();
  let stopping = false;
  let onIdle: (() => void) | null = null;
  const stopError = () => new RequestError('shutting_down', 'the server is shutting down');

  return {
    get stopping() {
      return stopping;
    },
    get size() {
      return running.size;
    },
    begin(atStop = 'finish') {
      if (stopping) throw stopError();
      const controller = new AbortController();
      running.set(controller, atStop);
      return {
        signal: controller.signal,
        cancel: () => controller.abort(new CancelledError('the client went away')),
        end: () => {
          running.delete(controller);
          if (running.size === 0) onIdle?.();
        },
      };
    },
    async stop(graceMs) {
      stopping = true;
      const idle = new Promise<void>((resolve) => {
        onIdle = resolve;
        if (running.size === 0) resolve();
      });
      for (const [controller, atStop] of running) if (atStop === 'abort') controller.abort(stopError());
      await within(idle, graceMs);
      for (const controller of running.keys()) controller.abort(stopError());
      await within(idle, LAST_WORDS_MS);
    },
  };
}
