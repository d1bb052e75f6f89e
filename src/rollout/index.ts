// rollout/: the search loop and the other methods over the engine and the retriever.
// Messages in; one stream of typed events out, and the record of every token.
// Never encodes again what was sampled; never parses tags outside sampled text.

export {
  type BackgroundEncoding,
  createBackgroundEncoding,
  type Encoding,
  inlineEncoding,
} from './encoding/encoding.js';
export type * from './events.js';
export { FailedSearch, FailedSearches, SearchesAwayError } from './failed-searches.js';
export { adapterFor } from './live-adapter.js';
export { METHODS } from './methods/index.js';
export { loadPrompts } from './prompt-file.js';
export { createRolloutRunner, type RolloutRunner, type RolloutRunnerOptions } from './runner.js';
export { isUnaskable } from './unaskable.js';
