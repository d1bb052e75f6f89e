// A retriever over passages in memory: the ones that share most words with the query come first. It counts
// its calls and can be told to fail.

import { CancelledError, RetrievalError } from '../../src/errors.js';
import type { Passage, Retriever } from '../../src/retrieval/index.js';

export interface MemoryRetriever extends Retriever {
  readonly queries: string[];
}

export interface MemoryRetrieverOptions {
  readonly passages: readonly Omit<Passage, 'score'>[];
  /** Number of first calls that fail. */
  readonly failures?: number;
  /** Waits before it answers. */
  readonly delay?: (signal: AbortSignal | undefined) => Promise<void>;
}

const wordsOf = (text: string): Set<string> => new Set(text.toLowerCase().match(/\p{L}+/gu) ?? []);

export function createMemoryRetriever(options: MemoryRetrieverOptions): MemoryRetriever {
  const queries: string[] = [];
  const searchOne = (query: string, k: number): Passage[] => {
    if (query === '') return [];
    const asked = wordsOf(query);
    return options.passages
      .map((passage) => {
        const words = wordsOf(`${passage.title} ${passage.text}`);
        return { ...passage, score: [...asked].filter((word) => words.has(word)).length };
      })
      .sort((a, b) => b.score - a.score)
      .slice(0, k);
  };
  return {
    info: { kind: 'bm25', name: 'memory', passageCount: options.passages.length },
    snapshotId: 'memory-1',
    queries,
    async search(asked, k, { signal } = {}) {
      queries.push(...asked);
      await options.delay?.(signal);
      if (signal?.aborted) throw new CancelledError();
      if (queries.length <= (options.failures ?? 0)) throw new RetrievalError('the engine is away');
      return asked.map((query) => searchOne(query, k));
    },
    async close() {},
  };
}
