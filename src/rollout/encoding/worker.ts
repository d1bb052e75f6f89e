// Worker entry: encodes long texts, so that the HTTP thread goes on.

import { serveWorker } from '../../runtime/index.js';
import { createTokenizer, type TokenizerSource } from '../../tokenizer/index.js';
import { placePassages } from '../passages.js';
import { encodePrompt } from './encode-prompt.js';
import type { EncodingMethods, EncodingStart } from './messages.js';

serveWorker<EncodingMethods, EncodingStart>(({ source }) => {
  const tokenizer = createTokenizer(JSON.parse(source) as TokenizerSource);
  return {
    methods: {
      prompt: ({ messages, window }) => encodePrompt(messages, tokenizer, window),
      place: ({ passages, request }) => placePassages(passages, { ...request, tokenizer }),
    },
  };
});
