// The store as the loop sees it: what is wrong with it is told from what is wrong elsewhere, and nobody waits for it without end.

import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { CancelledError, UnavailableError } from '../../errors.js';
import type { TrajectoryStore } from '../../trajectory/index.js';

/** The store cannot be used now: nothing that the loop did is at fault, and it goes on when the store comes back. */
export class StoreAwayError extends UnavailableError {}

/** So long the loop waits for what it asked of the store once it closes; what it wanted written the store may write still. */
const CLOSING_MS = 2_000;

/** @param closed  fires when the loop closes: calls then end with {@link CancelledError} where the store does not answer soon */
export function patientStore(store: TrajectoryStore, closed: AbortSignal): TrajectoryStore {
  const givenUp = new AbortController();
  // Each call that is under way listens to it.
  setMaxListeners(0, givenUp.signal);
  closed.addEventListener('abort', () => setTimeout(() => givenUp.abort(), CLOSING_MS).unref(), {
    once: true,
  });
  const asked = async (answer: Promise<unknown>): Promise<unknown> => {
    try {
      return await unlessAborted(answer, givenUp.signal);
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      throw new StoreAwayError(error.message, { cause: error });
    }
  };
  return new Proxy(store, {
    get(target, name): unknown {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        const answer: unknown = value.apply(target, args);
        return answer instanceof Promise ? asked(answer) : answer;
      };
    },
  });
}

async function unlessAborted(answer: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(new CancelledError('the loop has closed'));
  });
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await Promise.race([answer, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

const LOOK_MS = 100;
/** Trouble of the store that an order waits for. */
const ORDER_MS = 5_000;
/** A micro-batch under way ends first; what takes longer may take for ever. */
const TURN_MS = 30_000;

export interface Patience {
  readonly ms?: number;
  /** What the order waits for before it begins, in words; null: it has begun, or may wait for as long as it takes. */
  readonly waitsFor?: () => string | null;
  readonly turnMs?: number;
}

/**
 * What an order leads to, where it gets its turn and the store lets it be written down.
 * @throws {UnavailableError} the store has been in trouble for too long, or something else does not let it begin; the work goes on by itself
 */
export async function unlessStuck<T>(
  work: Promise<T>,
  store: Pick<TrajectoryStore, 'health'>,
  { ms: patienceMs = ORDER_MS, turnMs = TURN_MS, waitsFor = () => null }: Patience = {},
): Promise<T> {
  const over = new AbortController();
  const stuck = async (): Promise<never> => {
    const began = performance.now();
    for (let since = began; ; ) {
      await sleep(LOOK_MS, undefined, { signal: over.signal, ref: false });
      const { trouble } = store.health();
      if (trouble === null) since = performance.now();
      else if (performance.now() - since >= patienceMs)
        throw new UnavailableError(
          `the store is away (${trouble}): the order is carried out as soon as it is back`,
        );
      const before = waitsFor();
      if (before !== null && performance.now() - began >= turnMs)
        throw new UnavailableError(`the loop is still ${before}: the order is carried out when that ends`);
    }
  };
  try {
    return await Promise.race([work, stuck()]);
  } finally {
    over.abort();
    // Where it was given up nobody listens any more.
    work.catch(() => {});
  }
}
