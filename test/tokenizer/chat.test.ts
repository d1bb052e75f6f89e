import fc from 'fast-check';
import type { ChatMessage, Tokenizer } from '../../src/tokenizer/tokenizer.js';
import {
  type ChatCase,
  DECODERS,
  modelTokenizer,
  oracle,
  readJson,
  smollm2Tokenizer,
  type TokenOracle,
} from './fixtures.js';

const tokenizers: [string, Tokenizer, ChatCase[]][] = [
  ...DECODERS.map((model): [string, Tokenizer, ChatCase[]] => [
    model,
    modelTokenizer(model),
    oracle(model).chats,
  ]),
  ['SmolLM2', smollm2Tokenizer(), readJson<TokenOracle>('smollm2', 'tokens.json').chats],
];

/** Whether encoding the rendered text as a whole would take control tokens out of message text. */
const isForged = (tokenizer: Tokenizer, { messages, text }: ChatCase): boolean =>
  messages.some(({ content }) =>
    [...tokenizer.addedTokens.keys()].some((name) => content.includes(name) && text.includes(content)),
  );

const controls = (tokenizer: Tokenizer, ids: readonly number[]): number[] => {
  const added = new Set(tokenizer.addedTokens.values());
  return ids.filter((id) => added.has(id));
};

describe.each(tokenizers)('%s', (_, tokenizer, chats) => {
  test.each(chats)('renders $messages', ({ messages, addGenerationPrompt, text }) => {
    expect(tokenizer.renderChat(messages, { addGenerationPrompt })).toBe(text);
  });

  test.each(chats)('encodes $messages', (chat) => {
    const { messages, addGenerationPrompt, text, ids } = chat;
    const encoded = tokenizer.encodeChat(messages, { addGenerationPrompt });
    expect(tokenizer.decode(encoded)).toBe(text);
    if (isForged(tokenizer, chat)) expect(encoded).not.toEqual(ids);
    else expect(encoded).toEqual(ids);
  });

  const names = [...tokenizer.addedTokens.keys()];
  const parts = names.flatMap((name) => [name, name.slice(0, -1), name.slice(1), name[0], name.at(-1)]);
  const content = fc
    .array(
      fc.oneof(
        fc.constantFrom(...(parts as string[])),
        fc.constantFrom('<think>', '</think>', '<search>', '</answer>', '\n', ' ', 'user', 'system'),
        fc.string({ unit: 'binary', maxLength: 6 }),
        fc.constantFrom('\ud83d', '\ude00', '\ue000', '\ue001', '$&', '{{ bos_token }}', '{% raw %}'),
      ),
      { maxLength: 8 },
    )
    .map((texts) => texts.join(''));
  const chatOf = fc.array(
    fc.record({ role: fc.constantFrom<ChatMessage['role']>('user', 'assistant', 'tool'), content }),
    { minLength: 1, maxLength: 4 },
  );

  test('control tokens come from the template alone', () => {
    fc.assert(
      fc.property(chatOf, (messages) => {
        const harmless = messages.map(({ role, content: text }) => ({
          role,
          // Reasoning that a template cuts away must stay in place for the two renderings to have one form.
          content: text.length > 0 ? 'x' : '',
        }));
        const ids = tokenizer.encodeChat(messages);
        expect(controls(tokenizer, ids)).toEqual(controls(tokenizer, tokenizer.encodeChat(harmless)));
      }),
      { numRuns: 400 },
    );
  });

  test('the text is that of the rendering', () => {
    fc.assert(
      fc.property(chatOf, (messages) => {
        const wellFormed = tokenizer.renderChat(messages).replace(/\p{Surrogate}/gu, '\ufffd');
        const text = tokenizer.decode(tokenizer.encodeChat(messages));
        expect(text.normalize('NFC')).toBe(withoutLostBytes(wellFormed).normalize('NFC'));
      }),
      { numRuns: 200 },
    );
  });

  /** Characters that the vocabulary has no bytes for are dropped by encoding. */
  const withoutLostBytes = (text: string): string => tokenizer.decode(tokenizer.encodePlain(text));
});
