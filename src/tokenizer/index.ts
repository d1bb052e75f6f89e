// tokenizer/: text to ids and back, chat templates, incremental decoding.
// Takes plain vocabulary data (tokenizer.json, or a GGUF vocabulary turned into the same form).
// Never reads weights, never lets message text become a control token.

export { BYTE_CHARACTERS } from './byte-alphabet.js';
export { createTokenizer, type TokenizerSource } from './create-tokenizer.js';
export { tokenizerFromGguf } from './gguf-vocabulary.js';
export { createStopMatcher, type StopMatcher } from './stop-matcher.js';
export type { ChatMessage, Detokenizer, Tokenizer } from './tokenizer.js';
