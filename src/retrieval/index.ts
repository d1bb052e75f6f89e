// retrieval/: finds passages for queries; builds and keeps the indexes they are found in.
// Queries in; passages with ids, titles, texts and scores out.
// Never knows a policy, a prompt or a tag.

export type * from './retriever.js';
