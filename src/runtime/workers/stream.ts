// A call whose events are read one by one.

/**
 * Yields what `call` emits and returns its result. Leaving the loop early aborts the call and waits for its end.
 * Events wait in memory until they are read.
 */
export async function* streamCall<Event, Result>(
  call: (onEvent: (event: Event) => void, signal: AbortSignal) => Promise<Result>,
  signal?: AbortSignal,
): AsyncGenerator<Event, Result, void> {
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener('abort', abort, { once: true });
  let events: Event[] = [];
  let ended = false;
  let wake = () => {};
  const result = call((event) => {
    events.push(event);
    wake();
  }, controller.signal).finally(() => {
    ended = true;
    wake();
  });
  // Read below; until then a failure is not unhandled.
  result.catch(() => {});
  try {
    for (;;) {
      const batch = events;
      events = [];
      for (const event of batch) yield event;
      if (events.length > 0) continue;
      if (ended) break;
      await new Promise<void>((resolve) => (wake = resolve));
    }
    return await result;
  } finally {
    signal?.removeEventListener('abort', abort);
    if (!ended) {
      controller.abort();
      await result.catch(() => {});
    }
  }
}
