// What passes between a worker and the thread that started it, and the types of a worker's methods.

import type { EncodedError } from './error-codec.js';

/** One method of a worker: what it takes, what it returns, and what it emits while it runs. */
export interface Method<Params = void, Result = void, Event = never> {
  readonly params: Params;
  readonly result: Result;
  readonly event: Event;
}

/** A worker's methods by name: an interface whose members are `Method`s. */
export type Methods<M> = { readonly [K in keyof M]: Method<unknown, unknown, unknown> };

/** What a thread is started with. */
export interface WorkerStart {
  readonly data: unknown;
  readonly niceness: number;
}

export type ToWorker =
  | { readonly kind: 'call'; readonly id: number; readonly method: string; readonly params: unknown }
  | { readonly kind: 'cancel'; readonly id: number }
  | { readonly kind: 'close' };

export type FromWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly error: EncodedError }
  | { readonly kind: 'event'; readonly id: number; readonly event: unknown }
  | { readonly kind: 'result'; readonly id: number; readonly result: unknown }
  | { readonly kind: 'error'; readonly id: number; readonly error: EncodedError }
  | { readonly kind: 'broadcast'; readonly event: unknown };
