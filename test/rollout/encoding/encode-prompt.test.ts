import fc from 'fast-check';
import { encodePrompt, pieces } from '../../../src/rollout/encoding/encode-prompt.js';

const user = (content: string) => [{ role: 'user' as const, content }];

/** Four characters a token, and no bound known without encoding. */
function coarse() {
  const seen = { longest: 0, encoded: 0, chats: 0 };
  const ids = (text: string) => Array<number>(Math.ceil(text.length / 4)).fill(1);
  return {
    seen,
    encodePlain: (text: string) => {
      seen.longest = Math.max(seen.longest, text.length);
      seen.encoded += text.length;
      return ids(text);
    },
    encodeChat: (messages: readonly { content: string }[]) => {
      seen.chats += 1;
      return ids(messages.map((message) => message.content).join(''));
    },
    minimumTokens: (_bytes: number) => 0,
  };
}

test('the least possible number of tokens is enough to refuse', () => {
  const tokenizer = { ...coarse(), minimumTokens: (bytes: number) => bytes };
  expect(() => encodePrompt(user('x'.repeat(2_000_000)), tokenizer, 4096)).toThrow(
    expect.objectContaining({
      code: 'context_length_exceeded',
      message: expect.stringContaining('the maximum context length is 4096'),
    }),
  );
  expect(tokenizer.seen).toMatchObject({ encoded: 0, chats: 0 });
});

test('else a long text is counted piece by piece until there is too much', () => {
  const tokenizer = coarse();
  expect(() => encodePrompt(user('word '.repeat(400_000)), tokenizer, 4096)).toThrow(
    expect.objectContaining({ code: 'context_length_exceeded' }),
  );
  expect(tokenizer.seen.chats).toBe(0);
  expect(tokenizer.seen.longest).toBeLessThanOrEqual(4097);
  expect(tokenizer.seen.encoded).toBeLessThan(30_000);
});

test('one token must be left for the answer; what fits is encoded as a whole', () => {
  const tokenizer = coarse();
  expect(encodePrompt(user('x'.repeat(4 * 99)), tokenizer, 100)).toHaveLength(99);
  expect(() => encodePrompt(user('x'.repeat(4 * 100)), tokenizer, 100)).toThrow('has 100');
  expect(encodePrompt(user('word '.repeat(3270)), tokenizer, 4096)).toHaveLength(4088);
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
