/** Fires at Ctrl-C and SIGTERM: a benchmark then ends what it is about in good order, and a later one goes on. */
export function interrupted(): AbortSignal {
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());
  return stop.signal;
}
