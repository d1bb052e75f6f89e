import fc from 'fast-check';
import { assertPromptFits, maxPromptBytes, pieces } from '../../../src/server/answers/prompt-length.js';
import type { Policy } from '../../../src/server/index.js';
import { byteTokenizer, ENGINE_INFO, scriptedPolicy } from '../../support/test-server.js';

const signal = new AbortController().signal;
const { engine } = scriptedPolicy({ run: () => (async function* () {})() });
const user = (content: string) => ({
  messages: [{ role: 'user' as const, content }],
  promptBytes: Buffer.byteLength(content),
});

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

test('messages count, however short they are', async () => {
  const messages = Array(ENGINE_INFO.maxSequenceTokens + 1).fill({ role: 'user', content: '' });
  await expect(
    assertPromptFits({ messages, promptBytes: 0 }, { engine, tokenizer: coarse }, signal),
  ).rejects.toMatchObject({ code: 'context_length_exceeded' });
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

test('the bound in bytes is no less than the window holds and at most twice that', () => {
  const bound = (minimumTokens: (bytes: number) => number) =>
    maxPromptBytes({ state: 'ready', value: { engine, tokenizer: { ...byteTokenizer, minimumTokens } } });
  const window = ENGINE_INFO.maxSequenceTokens;
  expect(bound((bytes) => bytes)).toBe(2 * window);
  expect(bound((bytes) => Math.ceil(bytes / 30))).toBe(32 * window);
  expect(bound(() => 0)).toBe(Number.POSITIVE_INFINITY);
  expect(maxPromptBytes({ state: 'loading', reason: 'x' })).toBe(Number.POSITIVE_INFINITY);
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
