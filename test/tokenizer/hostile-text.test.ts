import fc from 'fast-check';
import { createBpe } from '../../src/tokenizer/bpe.js';
import { createTokenizer } from '../../src/tokenizer/index.js';
import type { ModelConfig } from '../../src/tokenizer/tokenizer-json.js';
import { DECODERS } from '../support/fixtures.js';
import { minilmTokenizer, modelTokenizer, readJson, smollm2Tokenizer } from './fixtures.js';

const tokenizers = [
  ...DECODERS.map((model) => [model, modelTokenizer(model)] as const),
  ['SmolLM2', smollm2Tokenizer()] as const,
];
/** One of each kind: GPT-2's expression, Qwen's with a normaliser, WordPiece. */
const encoders = [
  ['SmolLM2', smollm2Tokenizer()],
  ['tiny-qwen3', modelTokenizer('tiny-qwen3')],
  ['MiniLM', minilmTokenizer()],
] as const;

describe.each(encoders)('%s and long texts', (_, tokenizer) => {
  test('lone surrogates are encoded as U+FFFD', () => {
    for (const text of ['\ud800', '\udfff', 'a\ud83d', '\ude00b', '\ude00\ud83d'])
      expect(tokenizer.encodePlain(text)).toEqual(
        tokenizer.encodePlain(text.replace(/[\ud800-\udfff]/g, '\ufffd')),
      );
  });

  // With a quadratic step these run into jest's limit.
  const size = 100_000;
  test.each([
    ['one word', 'a'.repeat(size)],
    ['a word of two letters', 'ab'.repeat(size / 2)],
    ['spaces', ' '.repeat(size)],
    ['spaces before a letter', `${' '.repeat(size)}x`],
    ['line ends', ' \r\n\t'.repeat(size / 4)],
    ['digits', '7'.repeat(size)],
    ['punctuation', '!?'.repeat(size / 2)],
    ['openings of control tokens', '<|im_'.repeat(size / 5)],
    ['combining marks in the wrong order', '\u0301\u0316'.repeat(size / 2)],
    ['ideographs', '\u6771\u4eac'.repeat(size / 2)],
    ['letters of two units', '\u{10400}'.repeat(size / 2)],
    ['lone surrogates', '\ud800'.repeat(size)],
  ])('%s', (_name, text) => {
    const plain = tokenizer.encodePlain(text);
    const ids = tokenizer.encode(text);
    // Compared by hand: jest's own comparison of such long arrays takes longer than making them.
    expect(ids.length === plain.length && ids.every((id, index) => id === plain[index])).toBe(true);
  });
});

describe.each(tokenizers)('%s', (_, tokenizer) => {
  const names = [...tokenizer.addedTokens.keys()];
  const text = fc
    .array(
      fc.oneof(fc.constantFrom(...names), fc.string({ unit: 'binary' }), fc.constantFrom('<', '|', ' ')),
      {
        maxLength: 10,
      },
    )
    .map((parts) => parts.join(''));

  test('plain text never gives an added token, and loses nothing but what its normaliser changes', () => {
    const added = new Set(tokenizer.addedTokens.values());
    const missing = /[\x04\x06\x13\x14\x16\x1d\u{40000}-\u{bffff}]/u;
    fc.assert(
      fc.property(text, (plain) => {
        fc.pre(!missing.test(plain));
        const ids = tokenizer.encodePlain(plain);
        expect(ids.filter((id) => added.has(id))).toEqual([]);
        expect([plain, plain.normalize('NFC')]).toContain(tokenizer.decode(ids));
      }),
      { numRuns: 300 },
    );
  });

  test('no text gives fewer tokens than the least for its length', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          text,
          fc.constantFrom('-', '#', ' ', '\n', 'a').map((c) => c.repeat(500)),
        ),
        (plain) => {
          const least = tokenizer.minimumTokens(Buffer.byteLength(plain));
          const dropped = plain.match(/[\x04\x06\x13\x14\x16\x1d\u{40000}-\u{bffff}]/gu)?.length ?? 0;
          expect(tokenizer.encodePlain(plain).length + dropped).toBeGreaterThanOrEqual(least);
        },
      ),
    );
    expect(tokenizer.minimumTokens(2_000_000)).toBeGreaterThan(4096);
  });
});

test('a word that is the name of an added token stays plain, even where whole words need no merging', () => {
  const json = readJson<{ model: { vocab: Record<string, number> }; added_tokens: object[] }>(
    'models',
    'tiny-llama-rope3',
    'tokenizer.json',
  );
  const tokenizer = createTokenizer({
    tokenizerJson: {
      ...json,
      model: { ...json.model, vocab: { ...json.model.vocab, halt: 512, whole: 513 } },
      added_tokens: [...json.added_tokens, { id: 512, content: 'halt', special: true }],
    },
  });
  expect(tokenizer.encode('halt')).toEqual([512]);
  expect(tokenizer.encodePlain('halt')).not.toContain(512);
  expect(tokenizer.encodePlain('whole')).toEqual([513]);
});

test('no bound is claimed where a tokenizer may drop or join characters at will', () => {
  expect(minilmTokenizer().minimumTokens(1_000_000)).toBe(0);
});

test('merging by heap equals the rule: lowest rank first, leftmost first', () => {
  const letters = ['a', 'b', 'c'];
  const vocab = new Map<string, number>(letters.map((letter, id) => [letter, id]));
  const merges: [string, string][] = [];
  for (const pair of ['a a', 'b c', 'aa a', 'a b', 'aa aa', 'bc a', 'c c', 'aab c', 'aa b', 'bca bc']) {
    const [first, second] = pair.split(' ') as [string, string];
    merges.push([first, second]);
    for (const token of [first, second, first + second]) if (!vocab.has(token)) vocab.set(token, vocab.size);
  }
  const model: ModelConfig = {
    type: 'BPE',
    vocab,
    merges,
    scores: [],
    unknownToken: null,
    fuseUnknown: false,
    byteFallback: false,
    ignoreMerges: false,
    continuingSubwordPrefix: null,
    endOfWordSuffix: null,
    maxInputCharsPerWord: 100,
  };
  const byRule = (word: string): number[] => {
    const symbols = [...word];
    // Ranks are tried in order, but a merge can make a pair of a lower rank; so begin again after each.
    for (const [first, second] of merges)
      for (;;) {
        const best = merges.findIndex(([a, b]) => symbols.some((s, i) => s === a && symbols[i + 1] === b));
        if (best === -1) return symbols.map((symbol) => vocab.get(symbol) as number);
        const [a, b] = merges[best] ?? [first, second];
        const at = symbols.findIndex((s, i) => s === a && symbols[i + 1] === b);
        symbols.splice(at, 2, a + b);
      }
    return [];
  };
  const encode = createBpe(model, { byteLevel: false, addedIds: new Set() });
  const word = fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 120 });
  fc.assert(
    fc.property(word, (text) => {
      const ids: number[] = [];
      encode(text, ids);
      expect(ids).toEqual(byRule(text));
    }),
    { numRuns: 500 },
  );
});
