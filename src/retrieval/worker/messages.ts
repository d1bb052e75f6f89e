// What the retriever's worker is started with and what it can be asked.

import type { Method } from '../../runtime/index.js';
import type { EncoderSource } from '../embedder/encoder-source.js';
import type { LocalKind } from '../engines/search-service.js';
import type { Passage } from '../retriever.js';

export interface SearchWorkerData {
  readonly kind: LocalKind;
  readonly folder: string;
  readonly ef: number;
  /** Null for BM25. */
  readonly encoder: EncoderSource | null;
  /** Threads of the embedder. */
  readonly threads: number;
  readonly cacheEntries: number;
}

/** What may change while the index is searched. */
export interface IndexState {
  readonly name: string;
  readonly passageCount: number;
  readonly snapshotId: string;
}

export interface ChangeResult {
  readonly added: number;
  readonly removed: number;
}

export interface SearchMethods {
  state: Method<void, IndexState>;
  search: Method<
    { readonly queries: readonly string[]; readonly k: number },
    { readonly passages: Passage[][]; readonly state: IndexState }
  >;
}
