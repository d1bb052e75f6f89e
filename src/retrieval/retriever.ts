// What the rest of the house sees of retrieval.

export interface Passage {
  readonly id: string;
  readonly title: string;
  readonly text: string;
  /** Higher is better. Meaning depends on the kind: cosine, BM25, fused rank score. */
  readonly score: number;
}

export interface SearchOptions {
  readonly signal?: AbortSignal;
}

export interface RetrieverInfo {
  readonly kind: 'hnsw' | 'bm25' | 'hybrid' | 'remote';
  /** Name of the index, or the address of the remote engine. */
  readonly name: string;
  /** Number of passages; null when a remote engine does not say. */
  readonly passageCount: number | null;
}

export interface Retriever {
  readonly info: RetrieverInfo;
  /** Names the exact content that is searched; changes with every insert or delete. Of a remote engine it is the address alone. */
  readonly snapshotId: string;
  /**
   * The k best passages of each query, best first. Fewer when the index holds fewer; [] for an empty query.
   * @throws {RetrievalError} the engine failed
   * @throws {CancelledError} the signal fired
   */
  search(queries: readonly string[], k: number, options?: SearchOptions): Promise<Passage[][]>;
  close(): Promise<void>;
}

/** Whether the same snapshot is the same content. A remote engine's may change under its address. */
export const isPinned = ({ info }: Pick<Retriever, 'info'>): boolean => info.kind !== 'remote';
