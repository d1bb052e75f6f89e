// The text of a turn as a whole is what its tokens give one after the other, whatever they are.

import fc from 'fast-check';
import type { Tokenizer } from '../../src/tokenizer/index.js';
import { createSampledText, PROTOCOL_TAGS, sampledText } from '../../src/trajectory/index.js';
import { DECODERS } from '../support/fixtures.js';
import { createPieceTokenizer } from '../support/piece-tokenizer.js';
import { minilmTokenizer, modelTokenizer } from '../tokenizer/fixtures.js';

function oneByOne(ids: readonly number[], tokenizer: Tokenizer): string {
  const text = createSampledText(tokenizer);
  return ids.map((id) => text.push(id)).join('') + text.flush();
}

const TOKENIZERS: readonly (readonly [name: string, open: () => Tokenizer])[] = [
  ...DECODERS.map((model) => [model, () => modelTokenizer(model)] as const),
  ['word pieces', minilmTokenizer],
];

test.each(TOKENIZERS)('%s: any ids, control tokens and halves of characters too', (_name, open) => {
  const tokenizer = open();
  expect(tokenizer.specialIds.size).toBeGreaterThan(0);
  const id = fc.oneof(
    fc.integer({ min: 0, max: tokenizer.vocabSize + 3 }),
    fc.constantFrom(...tokenizer.specialIds),
    fc.constantFrom(...tokenizer.encodePlain('\u5317é🫠 the')),
  );
  fc.assert(
    fc.property(fc.array(id, { maxLength: 40 }), (ids) => {
      expect(sampledText(ids, tokenizer)).toBe(oneByOne(ids, tokenizer));
    }),
  );
});

test('a tag that is one control token is read, other control tokens are not', () => {
  const tokenizer = createPieceTokenizer(['<|im_end|>', ...PROTOCOL_TAGS]);
  const ids = [1, ...tokenizer.encodePlain('hm'), 2, 0];
  expect(sampledText(ids, tokenizer)).toBe('<think>hm</think>');
  expect(oneByOne(ids, tokenizer)).toBe('<think>hm</think>');
});
