// retrieval/: finds passages for queries; builds and keeps the indexes they are found in.
// Queries in; passages with ids, titles, texts and scores out.
// Never knows a policy, a prompt or a tag.

export { buildIndex } from './build/build-index.js';
export { addToIndex, removeFromIndex } from './change-index.js';
export { type Corpus, corpusIds, findCorpus } from './corpora/corpus.js';
export { pullCorpus } from './corpora/pull-corpus.js';
export { measureRates, type Rates } from './corpora/rates.js';
export { type Reckoning, reckon } from './corpora/reckon.js';
export { createRetriever } from './create-retriever.js';
export type { Embedder } from './embedder/embedder.js';
export { locateEncoder } from './embedder/encoder-source.js';
export { openParallelEmbedder } from './embedder/parallel-embedder.js';
export { demoIndexFolder, ensureDemoIndex } from './ensure-index.js';
export { describeIndex, type IndexFault, type IndexSummary, listIndexes } from './folder/list-indexes.js';
export { indexFolder } from './folder/local-index.js';
export type { IndexManifest } from './folder/manifest.js';
export { verifyIndex } from './folder/verify-index.js';
export { HnswIndex, LINKS } from './hnsw/hnsw-index.js';
export type { PassageInput } from './passages/passage-store.js';
export { isPinned, type Passage, type Retriever } from './retriever.js';
export { type SearchR1Document, toSearchR1Document } from './search-r1-document.js';
