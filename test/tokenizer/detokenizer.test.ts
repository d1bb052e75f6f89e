import fc from 'fast-check';
import { createDetokenizer, incompleteTail } from '../../src/tokenizer/detokenizer.js';
import type { TokenBytes } from '../../src/tokenizer/token-bytes.js';
import { modelTokenizer, smollm2Tokenizer } from './fixtures.js';

/** Token i is the i-th piece. */
const tokensOf = (pieces: readonly Uint8Array[]): Pick<TokenBytes, 'get' | 'dropsFirstSpace'> => ({
  dropsFirstSpace: false,
  get: (id) => pieces[id] ?? new Uint8Array(0),
});

const whole = (pieces: readonly Uint8Array[]): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat(pieces));

/** Bytes of real characters, of broken ones and of nothing at all, in one array. */
const bytes = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 4 }).map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 4 }),
      fc.constantFrom(
        Uint8Array.of(0xf0, 0x9f),
        Uint8Array.of(0xe0, 0x80),
        Uint8Array.of(0xed, 0xa0, 0x80),
        Uint8Array.of(0xf4, 0x90),
        Uint8Array.of(0xef, 0xbb, 0xbf),
        Uint8Array.of(0xc0),
        Uint8Array.of(0xff),
      ),
    ),
    { maxLength: 8 },
  )
  .map((parts) => Uint8Array.from(Buffer.concat(parts)));

const cut = (all: Uint8Array, places: readonly number[]): Uint8Array[] => {
  const borders = [0, ...places.map((place) => place % (all.length + 1)).sort((a, b) => a - b), all.length];
  return borders.slice(1).map((end, index) => all.slice(borders[index], end));
};

test('any bytes cut into tokens in any way give the text of the whole', () => {
  fc.assert(
    fc.property(bytes, fc.array(fc.nat(), { maxLength: 10 }), (all, places) => {
      const pieces = cut(all, places);
      const stream = createDetokenizer(tokensOf(pieces), () => false);
      let [text, fed] = ['', 0];
      pieces.forEach((piece, id) => {
        text += stream.push(id);
        fed += piece.length;
        // What is held back is at most three bytes, and the text so far is final.
        expect(incompleteTail(all.subarray(0, fed))).toBeLessThanOrEqual(3);
        expect(text).toBe(whole([all.subarray(0, fed - incompleteTail(all.subarray(0, fed)))]));
      });
      expect(text + stream.flush()).toBe(whole(pieces));
      expect(stream.flush()).toBe('');
    }),
    { numRuns: 1000 },
  );
});

test('a valid text never shows a replacement character on the way', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      fc.pre(!text.includes('\ufffd'));
      const pieces = [...Buffer.from(text)].map((byte) => Uint8Array.of(byte));
      const stream = createDetokenizer(tokensOf(pieces), () => false);
      const deltas = pieces.map((_, id) => stream.push(id));
      expect(deltas.join('')).toBe(text);
      expect(deltas.some((delta) => delta.includes('\ufffd'))).toBe(false);
    }),
  );
});

test('a character over two tokens comes with the second', () => {
  const pieces = [
    Uint8Array.of(0xf0, 0x9f),
    Uint8Array.of(0xab, 0xa0),
    Buffer.from(' ok'),
    Uint8Array.of(0xf0, 0x9f),
  ];
  const stream = createDetokenizer(tokensOf(pieces), () => false);
  expect([0, 1, 2, 3].map((id) => stream.push(id))).toEqual(['', '\u{1fae0}', ' ok', '']);
  expect(stream.flush()).toBe('\ufffd');
});

describe('tokens of real vocabularies', () => {
  const tokenizer = modelTokenizer('tiny-llama');
  const byteIds = Array.from({ length: tokenizer.vocabSize }, (_, id) => id).filter(
    (id) => tokenizer.tokenBytes(id).length === 1,
  );

  test('every single byte can be pushed, flushed and decoded', () => {
    expect(new Set(byteIds.map((id) => tokenizer.tokenBytes(id)[0])).size).toBe(256);
    for (const id of byteIds) {
      const stream = tokenizer.createDetokenizer();
      const text = stream.push(id) + stream.flush();
      expect(text).toBe(Buffer.from(tokenizer.tokenBytes(id)).toString('utf8'));
      expect(tokenizer.decode([id])).toBe(text);
    }
  });

  test('any ids decode to the same text in a stream as at once, special tokens spelled or skipped', () => {
    const smollm2 = smollm2Tokenizer();
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 49_160 })), fc.boolean(), (ids, skipSpecial) => {
        const stream = smollm2.createDetokenizer({ skipSpecial });
        const text = ids.map((id) => stream.push(id)).join('') + stream.flush();
        expect(text).toBe(smollm2.decode(ids, { skipSpecial }));
        if (!skipSpecial) expect(text).toBe(whole(ids.map((id) => smollm2.tokenBytes(id))));
      }),
      { numRuns: 200 },
    );
  });

  test('special tokens are spelled out or skipped', () => {
    const ids = tokenizer.encode('a<|im_end|>b');
    expect(tokenizer.decode(ids)).toBe('a<|im_end|>b');
    expect(tokenizer.decode(ids, { skipSpecial: true })).toBe('ab');
  });

  test('an id that no token has gives no text', () => {
    expect(tokenizer.tokenBytes(tokenizer.vocabSize)).toEqual(new Uint8Array(0));
    expect(tokenizer.decode([tokenizer.vocabSize, -1])).toBe('');
  });

  test('bytes handed out are a copy', () => {
    const id = byteIds[0] as number;
    const before = tokenizer.decode([id]);
    tokenizer.tokenBytes(id).fill(0x2a);
    expect(tokenizer.decode([id])).toBe(before);
  });
});
