import { setImmediate } from 'node:timers/promises';
import { CancelledError } from '../../errors.js';
import type { Embedder } from '../embedder/embedder.js';
import type { LocalIndex } from '../folder/local-index.js';
import type { ScoredLabel } from '../passages/passage-store.js';
import type { Passage } from '../retriever.js';
import { createQueryVectors, type QueryVectors } from './query-vectors.js';
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
  const { index, embedder, cacheEntries } = options;
  const vectorsOf: QueryVectors =
    embedder === null ? async () => new Map() : createQueryVectors(embedder, cacheEntries);
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
      const vectors = await vectorsOf(live.flatMap(({ queries }) => queries));
      for (const { queries, k, resolve } of live)
        resolve(queries.map((query) => searchOne(options, query, k, vectors.get(query))));
      for (const { signal, reject } of jobs) if (signal?.aborted) reject(new CancelledError());
    } catch (error) {
      for (const { reject } of jobs) reject(error);
    }
  }

  return {
    search: (queries, k, signal) =>
      new Promise((resolve, reject) => {
        waiting.push({ queries: queries.map(tidy), k, signal, resolve, reject });
        if (!draining) void drain();
      }),
  };
}

function searchOne(
  options: SearchServiceOptions,
  query: string,
  k: number,
  vector: Float32Array | undefined,
): Passage[] {
  if (query === '') return [];
  const found = rank(options, query, k, vector);
  const scores = new Map(found.map(({ label, score }) => [label, score]));
  return options.index
    .passages(found.map(({ label }) => label))
    .map(({ label, id, title, text }) => ({ id, title, text, score: scores.get(label) as number }));
}

function rank(
  { index, kind, ef }: SearchServiceOptions,
  query: string,
  k: number,
  vector: Float32Array | undefined,
): readonly ScoredLabel[] {
  if (kind === 'bm25' || vector === undefined) return index.bm25(query, k);
  if (kind === 'hnsw') return index.nearest(vector, k, ef);
  const depth = Math.max(2 * k, FUSION_DEPTH);
  return fuseRanks([index.nearest(vector, depth, ef), index.bm25(query, depth)], k);
}

function tidy(query: string): string {
  return query.slice(0, MAX_QUERY_CHARACTERS).trim();
}
