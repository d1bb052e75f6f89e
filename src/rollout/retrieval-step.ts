// One search of a rollout (protocol, section 1, rules 5 and 6): a repeated query is answered from memory, a
// failure is tried again with growing pauses and then reported, never thrown.

import { CancelledError } from '../errors.js';
import type { Passage, Retriever } from '../retrieval/index.js';
import { retried } from '../util/retried.js';

export interface SearchOutcome {
  readonly query: string;
  readonly passages: readonly Passage[];
  readonly durationMs: number;
  /** Why the search failed after all its tries; null when it did not. */
  readonly error: string | null;
  /** The same query was asked earlier. */
  readonly duplicate: boolean;
}

export interface SearcherOptions {
  readonly retriever: Retriever;
  readonly topK: number;
  /** Further tries after the first. */
  readonly retries: number;
  /** Pause before the first further try; it doubles each time. */
  readonly retryDelayMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * A search function with the memory of one rollout.
 * It throws {CancelledError} when the signal fires, also during a pause.
 */
export function createSearcher(options: SearcherOptions): (query: string) => Promise<SearchOutcome> {
  const asked = new Set<string>();
  const found = new Map<string, readonly Passage[]>();
  return async (query) => {
    const duplicate = asked.has(query);
    asked.add(query);
    const known = found.get(query);
    if (known !== undefined) return { query, passages: known, durationMs: 0, error: null, duplicate };
    const begun = performance.now();
    const { passages, error } = await searchWithRetries(query, options);
    if (error === null) found.set(query, passages);
    return { query, passages, durationMs: performance.now() - begun, error, duplicate };
  };
}

async function searchWithRetries(
  query: string,
  options: SearcherOptions,
): Promise<{ passages: readonly Passage[]; error: string | null }> {
  const { retriever, topK, retries, retryDelayMs: pauseMs, signal } = options;
  try {
    const [passages] = await retried(() => retriever.search([query], topK, { signal }), {
      retries,
      pauseMs,
      signal,
    });
    return { passages: passages ?? [], error: null };
  } catch (error) {
    if (error instanceof CancelledError) throw error;
    return { passages: [], error: error instanceof Error ? error.message : String(error) };
  }
}
