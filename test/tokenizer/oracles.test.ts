import { DECODERS } from '../support/fixtures.js';
import { minilmTokenizer, modelTokenizer, oracle, readJson, type TokenOracle } from './fixtures.js';

describe.each(DECODERS)('%s', (model) => {
  const tokenizer = modelTokenizer(model);
  const { cases } = oracle(model);

  test.each(cases)('encodes $text', ({ text, ids, idsPlain, idsWithTemplate }) => {
    expect(tokenizer.encode(text)).toEqual(ids);
    expect(tokenizer.encodePlain(text)).toEqual(idsPlain);
    expect(tokenizer.encode(text, { wrap: true })).toEqual(idsWithTemplate);
  });

  test.each(cases)('decodes $text', ({ ids, decoded, decodedSkippingSpecial }) => {
    expect(tokenizer.decode(ids)).toBe(decoded);
    expect(tokenizer.decode(ids, { skipSpecial: true })).toBe(decodedSkippingSpecial);
    const stream = tokenizer.createDetokenizer();
    expect(ids.map((id) => stream.push(id)).join('') + stream.flush()).toBe(decoded);
  });
});

describe('tiny-bert', () => {
  const tokenizer = modelTokenizer('tiny-bert');

  test.each(oracle('tiny-bert').cases)('encodes $text', ({ text, ids, idsWithTemplate }) => {
    expect(tokenizer.encode(text)).toEqual(ids);
    expect(tokenizer.encodePlain(text)).toEqual(ids);
    expect(tokenizer.encode(text, { wrap: true })).toEqual(idsWithTemplate);
  });
});

describe('all-MiniLM-L6-v2', () => {
  const tokenizer = minilmTokenizer();
  const { cases, maxTokens } = readJson<TokenOracle & { maxTokens: number }>('minilm', 'tokens.json');

  test.each(cases)('encodes $text', ({ text, ids }) => {
    const [first, last] = [ids[0], ids.at(-1)];
    expect(tokenizer.wrap([])).toEqual([first, last]);
    expect(tokenizer.wrap(tokenizer.encode(text).slice(0, maxTokens - 2))).toEqual(ids);
  });

  test('the truncation and padding in its tokenizer.json do not act', () => {
    expect(tokenizer.encode('word '.repeat(1000), { wrap: true })).toHaveLength(1002);
    expect(tokenizer.encode('word', { wrap: true })).toHaveLength(3);
  });

  test('control tokens in plain text are text', () => {
    const ids = tokenizer.encodePlain('[CLS] hello [SEP] [MASK] [PAD]');
    expect(ids.filter((id) => tokenizer.specialIds.has(id))).toEqual([]);
  });
});
