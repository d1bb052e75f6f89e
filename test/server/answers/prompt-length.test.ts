import fc from 'fast-check';
import { assertPromptFits, pieces } from '../../../src/server/answers/prompt-length.js';
import type { Policy } from '../../../src/server/index.js';
import { byteTokenizer, ENGINE_INFO, scriptedPolicy } from '../../support/test-server.js';

const signal = new AbortController().signal;
const { engine } = scriptedPolicy({ run: () => (async function* () {})() });
const user = (content: string) => [{ role: 'user' as const, content }];

/** Four characters a token, and no bound known without encoding. */
const coarse: Policy['tokenizer'] = {
  ...byteTokenizer,
  encodePlain: (text) => Array(Math.ceil(text.length / 4)).fill(1),
  minimumTokens: () => 0,
};

test('the least possible number of tokens is enough to refuse', async () => {
  const tokenizer = { ...byteTokenizer, encodePlain: () => fail() };
  const fail = (): never => {
    throw new Error('was encoded');
  };
  const long = user('x'.repeat(2_000_000));
  await expect(assertPromptFits(long, { engine, tokenizer }, signal)).rejects.toMatchObject({
    code: 'context_length_exceeded',
    param: 'messages',
    message: expect.stringContaining(`maximum context length is ${ENGINE_INFO.maxSequenceTokens}`),
  });
});

test('else it is encoded piece by piece until there is too much', async () => {
  let longest = 0;
  let encoded = 0;
  const tokenizer: Policy['tokenizer'] = {
    ...coarse,
    encodePlain: (text) => {
      longest = Math.max(longest, text.length);
      encoded += text.length;
      return coarse.encodePlain(text);
    },
  };
  const long = user('word '.repeat(400_000));
  await expect(assertPromptFits(long, { engine, tokenizer }, signal)).rejects.toMatchObject({
    code: 'context_length_exceeded',
  });
  expect(longest).toBeLessThanOrEqual(4097);
  expect(encoded).toBeLessThan(30_000);
});

test('what fits passes, and short texts are not encoded at all', async () => {
  await assertPromptFits(user('word '.repeat(3270)), { engine, tokenizer: coarse }, signal);
  const never = { ...coarse, encodePlain: () => Promise.reject() as never };
  await assertPromptFits(user('x'.repeat(16_000)), { engine, tokenizer: never }, signal);
});

test('other work goes on between pieces, and an abort ends it', async () => {
  const controller = new AbortController();
  const checking = assertPromptFits(
    user('a'.repeat(60_000)),
    { engine, tokenizer: coarse },
    controller.signal,
  );
  setImmediate(() => controller.abort(new Error('gone')));
  await expect(checking).rejects.toThrow('gone');
});

test('pieces join to the text, are short, and split no character', () => {
  const unit = fc.constantFrom('a', ' ', '🫠', 'é');
  const text = fc.array(fc.tuple(unit, fc.integer({ min: 1, max: 3000 })), { maxLength: 8 });
  fc.assert(
    fc.property(text, (runs) => {
      const whole = runs.map(([item, times]) => item.repeat(times)).join('');
      const cut = [...pieces(whole)];
      expect(cut.join('')).toBe(whole);
      for (const piece of cut) {
        expect(piece.length).toBeLessThanOrEqual(4097);
        expect(piece).not.toMatch(/\p{Surrogate}/u);
        expect(piece).not.toBe('');
      }
    }),
  );
});
