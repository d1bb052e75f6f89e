import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { CancelledError } from '../../errors.js';
import type { Embedder } from '../embedder/embedder.js';
import type { LocalIndex } from '../folder/local-index.js';
import type { ScoredLabel } from '../passages/passage-store.js';
import type { Passage } from '../retriever.js';
import { fuseRanks } from './rank-fusion.js';

export type LocalKind = 'hnsw' | 'bm25' | 'hybrid';

/** Candidates that each side of a hybrid search gives, at least. */
const FUSION_DEPTH = 50;
/** What lies beyond is cut by every embedder, and no sensible query is as long. */
const MAX_QUERY_CHARACTERS = 20_000;

export interface SearchServiceOptions {
  readonly index: LocalIndex;
  readonly kind: LocalKind;
  /** HNSW search width. */
  readonly ef: number;
  /** Null for BM25 alone. */
  readonly embedder: Embedder | null;
  /** Query embeddings kept. */
  readonly cacheEntries: number;
}

export interface SearchService {
  /** The k best passages of each query. @throws {CancelledError} the signal fired before the search began */
  search(queries: readonly string[], k: number, signal?: AbortSignal): Promise<Passage[][]>;
}

interface Job {
  readonly queries: readonly string[];
  readonly k: number;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (passages: Passage[][]) => void;
  readonly reject: (error: unknown) => void;
}

/** Searches a local index. Queries that arrive while others are being embedded form the next batch. */
export function createSearchService(options: SearchServiceOptions): SearchService {
  const { index, embedder } = options;
  const cache =
    options.cacheEntries > 0 ? new LRUCache<string, Float32Array>({ max: options.cacheEntries }) : null;
  let waiting: Job[] = [];
  let draining = false;

  async function drain(): Promise<void> {
    draining = true;
    // One turn of the event loop, so that queries sent together arrive together.
    for (await setImmediate(); waiting.length > 0; await setImmediate()) {
      const jobs = waiting;
      waiting = [];
      await runBatch(jobs);
    }
    draining = false;
  }

  async function runBatch(jobs: readonly Job[]): Promise<void> {
    try {
      await index.refresh();
      const live = jobs.filter(({ signal }) => !signal?.aborted);
      const vectors = await vectorsOf(live.flatMap(({ queries }) => queries.map(tidy)));
      for (const job of live) job.resolve(job.queries.map((query) => searchOne(tidy(query), job.k, vectors)));
      for (const { signal, reject } of jobs) if (signal?.aborted) reject(new CancelledError());
    } catch (error) {
      for (const { reject } of jobs) reject(error);
    }
  }

  /** Vectors of the texts by text, embedding what is not in the cache in one batch. */
  async function vectorsOf(texts: readonly string[]): Promise<ReadonlyMap<string, Float32Array>> {
    const vectors = new Map<string, Float32Array>();
    if (embedder === null) return vectors;
    const missing: string[] = [];
    for (const text of new Set(texts)) {
      const known = cache?.get(text);
      if (known) vectors.set(text, known);
      else if (text !== '') missing.push(text);
    }
    if (missing.length === 0) return vectors;
    const { dimension } = embedder.info;
    const matrix = await embedder.embed(missing, 'query');
    missing.forEach((text, i) => {
      const vector = matrix.slice(i * dimension, (i + 1) * dimension);
      vectors.set(text, vector);
      cache?.set(text, vector);
    });
    return vectors;
  }

  function searchOne(query: string, k: number, vectors: ReadonlyMap<string, Float32Array>): Passage[] {
    if (query === '') return [];
    const found = rank(query, k, vectors.get(query));
    const scores = new Map(found.map(({ label, score }) => [label, score]));
    return index
      .passages(found.map(({ label }) => label))
      .map(({ label, id, title, text }) => ({ id, title, text, score: scores.get(label) as number }));
  }

  function rank(query: string, k: number, vector: Float32Array | undefined): readonly ScoredLabel[] {
    if (options.kind === 'bm25' || vector === undefined) return index.bm25(query, k);
    if (options.kind === 'hnsw') return index.nearest(vector, k, options.ef);
    const depth = Math.max(2 * k, FUSION_DEPTH);
    return fuseRanks([index.nearest(vector, depth, options.ef), index.bm25(query, depth)], k);
  }

  return {
    search: (queries, k, signal) =>
      new Promise((resolve, reject) => {
        waiting.push({ queries, k, signal, resolve, reject });
        if (!draining) void drain();
      }),
  };
}

function tidy(query: string): string {
  return query.slice(0, MAX_QUERY_CHARACTERS).trim();
}
