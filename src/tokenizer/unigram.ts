// Unigram (sentence-piece) encoding of one word, by the library's own lattice.

import type { EncodeWord } from './bpe.js';
import { Unigram } from './library.js';
import type { ModelConfig } from './tokenizer-json.js';

export function createUnigram(model: ModelConfig): EncodeWord {
  const tokens = [...model.vocab.keys()];
  const unknown = model.vocab.get(model.unknownToken ?? '') ?? 0;
  const unigram = new Unigram(
    { vocab: tokens.map((token, id) => [token, model.scores[id] as number] as const), unk_id: unknown },
    '',
  );
  return (word, ids) => {
    let afterUnknown = false;
    for (const token of unigram.tokenize(word)) {
      const id = model.vocab.get(token);
      if (id !== undefined) ids.push(id);
      else if (!afterUnknown) ids.push(unknown);
      afterUnknown = id === undefined;
    }
  };
}
