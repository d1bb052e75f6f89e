// Typed search events, the field `searchloop` of deltas and messages and frames of the WebSocket.

import type { Passage } from '../../retrieval/index.js';
import type { RolloutEvent } from '../../rollout/index.js';

export interface SearchQueryEvent {
  readonly type: 'search.query';
  /** Counts the searches of one rollout from 0. */
  readonly index: number;
  readonly query: string;
}

export interface SearchResultsEvent {
  readonly type: 'search.results';
  readonly index: number;
  readonly query: string;
  readonly passages: readonly Passage[];
  readonly duration_ms: number;
  readonly error: string | null;
}

type Source = Extract<RolloutEvent, { type: 'search.query' | 'search.results' }>;

export function searchEventOf(event: Source): SearchQueryEvent | SearchResultsEvent {
  if (event.type === 'search.query') return { type: event.type, index: event.index, query: event.query };
  const passages = event.passages.map(({ id, title, text, score }) => ({ id, title, text, score }));
  return {
    type: event.type,
    index: event.index,
    query: event.query,
    passages,
    duration_ms: Math.round(event.durationMs),
    error: event.error,
  };
}
