// retrieval/: finds passages for queries; builds and keeps the indexes they are found in.
// Queries in; passages with ids, titles, texts and scores out.
// Never knows a policy, a prompt or a tag.

export { type BuildOptions, buildIndex } from './build/build-index.js';
export { type AddOptions, addToIndex, removeFromIndex } from './change-index.js';
export { type Corpus, corpusIds, findCorpus } from './corpora/corpus.js';
export { type PullCorpusOptions, type PulledCorpus, pullCorpus } from './corpora/pull-corpus.js';
export { measureRates, type Rates } from './corpora/rates.js';
export { type Reckoning, reckon } from './corpora/reckon.js';
export { createRetriever } from './create-retriever.js';
export type { Embedder, EmbedderInfo, EmbedOptions, TextKind } from './embedder/embedder.js';
export { openEncoderEmbedder } from './embedder/encoder-embedder.js';
export { type EncoderSource, type LocateOptions, locateEncoder } from './embedder/encoder-source.js';
export { openParallelEmbedder, type ParallelOptions } from './embedder/parallel-embedder.js';
export { createRemoteRetriever, type RemoteOptions } from './engines/remote.js';
export { type Ensured, type EnsureOptions, ensureDemoIndex, ensureIndex } from './ensure-index.js';
export { describeIndex, type IndexFault, type IndexSummary, listIndexes } from './folder/list-indexes.js';
export { indexFolder } from './folder/local-index.js';
export type { IndexManifest } from './folder/manifest.js';
export { verifyIndex } from './folder/verify-index.js';
export { exactSearch } from './hnsw/exact-search.js';
export { HnswIndex, type HnswSettings, type Metric, type Neighbor } from './hnsw/hnsw-index.js';
export type { PassageInput } from './passages/passage-store.js';
export {
  isPinned,
  type Passage,
  type Retriever,
  type RetrieverInfo,
  type SearchOptions,
} from './retriever.js';
export { type SearchR1Document, toSearchR1Document } from './search-r1-document.js';
export type { ChangeResult } from './worker/messages.js';
