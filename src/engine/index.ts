// engine/: batches sequences of tokens through the policy model, in its own worker thread.
// Tokens in; tokens, log-probabilities and stop reasons out.
// Never knows a tag, a prompt, a question or a passage.

export type { AdapterFault } from './adapter-registry.js';
export { EngineAwayError } from './away.js';
export { createEngine, type Engine, type EngineOptions } from './create-engine.js';
export type * from './generator.js';
export { scoreGivenTokens } from './given-tokens.js';
export { LEAST_TEMPERATURE, ONE_GREEDY_TOKEN, RAW_POLICY } from './sampler/parameters.js';
export { withOpen } from './with-open.js';
