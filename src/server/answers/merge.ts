// Several rollouts of one request as one stream of events.

import { CancelledError } from '../../errors.js';
import type { Rollout, RolloutEvent } from '../../rollout/index.js';
import { fairTurn } from './fair-turn.js';

export interface ChoiceEvent {
  readonly choice: number;
  readonly event: RolloutEvent;
}

type Settled =
  | { readonly choice: number; readonly result: IteratorResult<RolloutEvent, void> }
  | { readonly choice: number; readonly error: unknown };

export interface MergeOptions {
  readonly count: number;
  /** Rollouts that run at once; the next begins when one ends. */
  readonly concurrency: number;
  /** Ends the stream at once by throwing its reason, also when a rollout does not heed it. */
  readonly signal: AbortSignal;
}

/**
 * Yields the events of `count` rollouts as they come. Each rollout is at most one event ahead of the reader,
 * so a reader that pauses pauses them. The first failure ends all, through the signal that each is started with.
 */
export async function* mergeRollouts(
  start: (choice: number, signal: AbortSignal) => Rollout,
  options: MergeOptions,
): AsyncGenerator<ChoiceEvent, void, void> {
  const { count, concurrency, signal } = options;
  const live = new Map<number, Rollout>();
  const settled: Settled[] = [];
  const own = new AbortController();
  let wake = (): void => {};
  let next = 0;

  const pull = (choice: number, rollout: Rollout): void => {
    const push = (item: Settled): void => {
      settled.push(item);
      wake();
    };
    rollout.next().then(
      (result) => push({ choice, result }),
      (error: unknown) => push({ choice, error }),
    );
  };
  const startNext = (): void => {
    const rollout = start(next, own.signal);
    live.set(next, rollout);
    pull(next, rollout);
    next += 1;
  };
  const onAbort = (): void => {
    own.abort(signal.reason);
    wake();
  };
  signal.addEventListener('abort', onAbort, { once: true });

  try {
    while (next < count && live.size < concurrency) startNext();
    while (live.size > 0) {
      signal.throwIfAborted();
      const item = settled.shift();
      if (!item) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      if ('error' in item) throw item.error;
      if (item.result.done) {
        live.delete(item.choice);
        if (next < count) startNext();
        continue;
      }
      yield { choice: item.choice, event: item.result.value };
      await fairTurn();
      pull(item.choice, live.get(item.choice)!);
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    // Leaving alone would have to wait for the step that a rollout is in; nobody waits for it here.
    own.abort(new CancelledError('the request has ended'));
    for (const rollout of live.values()) void rollout.return().catch(() => {});
  }
}
