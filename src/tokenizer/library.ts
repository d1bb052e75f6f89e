// The parts of @huggingface/tokenizers that this room uses. Its own type files name their imports without file
// endings, which Node's module resolution does not follow, so the few signatures stand here.

import * as tokenizers from '@huggingface/tokenizers';

interface Library {
  /** Translates an expression of tokenizer.json (Oniguruma) to JavaScript. */
  readonly SplitPreTokenizer: new (config: {
    readonly type: 'Split';
    readonly pattern: unknown;
    readonly invert: boolean;
  }) => { readonly pattern: RegExp | null };
  readonly SequenceNormalizer: new (config: {
    readonly normalizers: readonly unknown[];
  }) => { normalize(text: string): string };
  readonly Unigram: new (
    config: { readonly vocab: readonly (readonly [string, number])[]; readonly unk_id: number },
    eosToken: string,
  ) => { tokenize(text: string): string[] };
}

export const { SplitPreTokenizer, SequenceNormalizer, Unigram } = tokenizers as unknown as Library;
