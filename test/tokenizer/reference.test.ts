import { createTokenizer } from '../../src/tokenizer/index.js';
import { readJson, type TokenCase } from './fixtures.js';

interface Reference {
  readonly name: string;
  readonly tokenizerJson: unknown;
  readonly cases: TokenCase[];
}

describe.each(readJson<Reference[]>('tokenizer', 'reference.json'))('$name', ({ tokenizerJson, cases }) => {
  const tokenizer = createTokenizer({ tokenizerJson });

  test.each(cases)('$text', ({ text, ids, idsPlain, idsWithTemplate, decoded, decodedSkippingSpecial }) => {
    expect(tokenizer.encode(text)).toEqual(ids);
    expect(tokenizer.encodePlain(text)).toEqual(idsPlain);
    expect(tokenizer.encode(text, { wrap: true })).toEqual(idsWithTemplate);
    expect(tokenizer.decode(ids)).toBe(decoded);
    expect(tokenizer.decode(ids, { skipSpecial: true })).toBe(decodedSkippingSpecial);
    const stream = tokenizer.createDetokenizer();
    expect(ids.map((id) => stream.push(id)).join('') + stream.flush()).toBe(decoded);
  });
});
