import { assertPromptFits, maxPromptBytes } from '../../../src/server/answers/prompt-length.js';
import { byteTokenizer, ENGINE_INFO, scriptedPolicy } from '../../support/test-server.js';

const { engine } = scriptedPolicy({ run: () => (async function* () {})() });
const user = (content: string) => ({
  messages: [{ role: 'user' as const, content }],
  promptBytes: Buffer.byteLength(content),
});
const unbounded = { ...byteTokenizer, minimumTokens: () => 0 };

test('the least possible number of tokens is enough to refuse', () => {
  expect(() => assertPromptFits(user('x'.repeat(5000)), { engine, tokenizer: byteTokenizer })).toThrow(
    expect.objectContaining({
      code: 'context_length_exceeded',
      param: 'messages',
      message: expect.stringContaining(`maximum context length is ${ENGINE_INFO.maxSequenceTokens}`),
    }),
  );
  expect(() => assertPromptFits(user('x'.repeat(5000)), { engine, tokenizer: unbounded })).not.toThrow();
});

test('messages count, however short they are', () => {
  const messages = Array(ENGINE_INFO.maxSequenceTokens + 1).fill({ role: 'user', content: '' });
  expect(() => assertPromptFits({ messages, promptBytes: 0 }, { engine, tokenizer: unbounded })).toThrow(
    expect.objectContaining({ code: 'context_length_exceeded' }),
  );
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
