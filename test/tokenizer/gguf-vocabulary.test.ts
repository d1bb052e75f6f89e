import { createTokenizer, tokenizerFromGguf } from '../../src/tokenizer/index.js';
import { openGguf } from '../../src/weights/index.js';
import { fixture } from '../support/fixtures.js';
import {
  modelTokenizer,
  oracle,
  readJson,
  smollm2Metadata,
  smollm2Tokenizer,
  type TokenOracle,
} from './fixtures.js';

describe('SmolLM2', () => {
  const tokenizer = smollm2Tokenizer();
  const { cases, special } = readJson<TokenOracle & { special: Record<string, number> }>(
    'smollm2',
    'tokens.json',
  );

  test.each(cases)('encodes $text', ({ text, ids, idsPlain }) => {
    expect(tokenizer.encode(text)).toEqual(ids);
    expect(tokenizer.encodePlain(text)).toEqual(idsPlain);
    expect(tokenizer.decode(ids)).toBe(text);
    expect(tokenizer.decode(idsPlain as number[])).toBe(text);
  });

  test('knows its control tokens and adds none by itself', () => {
    expect(Object.fromEntries(tokenizer.addedTokens)).toEqual(special);
    expect([...tokenizer.specialIds].sort((a, b) => a - b)).toEqual(Object.values(special));
    expect(tokenizer.vocabSize).toBe(49152);
    expect(tokenizer.wrap([5])).toEqual([5]);
  });

  test('every token has bytes; six control characters and bytes outside text have no token', () => {
    const single = new Set<number>();
    for (let id = 0; id < tokenizer.vocabSize; id++) {
      const bytes = tokenizer.tokenBytes(id);
      expect(bytes.length).toBeGreaterThan(0);
      if (bytes.length === 1) single.add(bytes[0] as number);
    }
    const without = Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => !single.has(byte));
    expect(without.slice(0, 6)).toEqual([0x04, 0x06, 0x13, 0x14, 0x16, 0x1d]);
    expect(without.slice(6).every((byte) => byte >= 0xc0)).toBe(true);
    expect(tokenizer.encodePlain('a\u0004b')).toEqual(
      tokenizer.encodePlain('a').concat(tokenizer.encodePlain('b')),
    );
  });
});

/** What a GGUF reader gives for a tokenizer.json: the same vocabulary in the other form. */
function metadataOf(model: string, pre: string): Map<string, unknown> {
  const json = readJson<{
    model: { vocab: Record<string, number>; merges: [string, string][] };
    added_tokens: { id: number; content: string; special: boolean }[];
  }>('models', model, 'tokenizer.json');
  const tokens: string[] = [];
  const kinds: number[] = [];
  for (const [token, id] of Object.entries(json.model.vocab)) [tokens[id], kinds[id]] = [token, 1];
  for (const token of json.added_tokens)
    [tokens[token.id], kinds[token.id]] = [token.content, token.special ? 3 : 4];
  return new Map<string, unknown>([
    ['tokenizer.ggml.model', 'gpt2'],
    ['tokenizer.ggml.pre', pre],
    ['tokenizer.ggml.tokens', tokens],
    ['tokenizer.ggml.token_type', Int32Array.from(kinds)],
    ['tokenizer.ggml.merges', json.model.merges.map((pair) => pair.join(' '))],
    ['tokenizer.ggml.bos_token_id', 507],
  ]);
}

test.each([
  ['tiny-llama', 'smollm'],
  ['tiny-llama-rope3', 'llama-bpe'],
  ['tiny-qwen2', 'qwen2'],
  ['tiny-qwen3', 'qwen2'],
])('%s in GGUF form (%s) encodes as its tokenizer.json does', (model, pre) => {
  const fromGguf = createTokenizer(tokenizerFromGguf(metadataOf(model, pre)));
  const fromJson = modelTokenizer(model);
  for (const { text, ids, idsPlain, idsWithTemplate } of oracle(model).cases) {
    expect(fromGguf.encode(text)).toEqual(ids);
    expect(fromGguf.encodePlain(text)).toEqual(idsPlain);
    expect(fromGguf.encode(text, { wrap: true })).toEqual(idsWithTemplate);
  }
  expect(fromGguf.addedTokens).toEqual(fromJson.addedTokens);
  expect(fromGguf.specialIds).toEqual(fromJson.specialIds);
});

test.each(['f32', 'q8_0', 'q4_1'])(
  'the vocabulary in a GGUF file (%s) encodes as the tokenizer.json it was made of',
  (type) => {
    const file = openGguf(fixture('gguf', `tiny-llama-${type}.gguf`));
    try {
      const tokenizer = createTokenizer(tokenizerFromGguf(file.metadata));
      for (const { text, ids, idsPlain } of oracle('tiny-llama').cases) {
        expect(tokenizer.encode(text)).toEqual(ids);
        expect(tokenizer.encodePlain(text)).toEqual(idsPlain);
      }
    } finally {
      file.close();
    }
  },
);

test('gpt-2 keeps numbers whole, default cuts them by threes, punctuation first', () => {
  const words = (pre: string, text: string): string[] => {
    const metadata = metadataOf('tiny-llama', pre);
    // Without merges each word is one byte a token, so whole words are made tokens.
    const tokens = metadata.get('tokenizer.ggml.tokens') as string[];
    tokens.push('12345', '345', '45', '!!', '!!x');
    metadata.delete('tokenizer.ggml.token_type');
    metadata.set('tokenizer.ggml.merges', ['1 2', '3 4', '34 5', '12 345', '4 5', '! !', '!! x']);
    tokens.push('12', '34');
    const tokenizer = createTokenizer(tokenizerFromGguf(metadata));
    return tokenizer.encodePlain(text).map((id) => tokenizer.decode([id]));
  };
  expect(words('gpt-2', '12345!!x')).toEqual(['12345', '!!', 'x']);
  expect(words('default', '12345!!x')).toEqual(['12', '3', '45', '!!', 'x']);
});

describe('refusals', () => {
  const changed = (key: string, value: unknown): Map<string, unknown> => {
    const metadata = metadataOf('tiny-llama', 'smollm');
    if (value === undefined) metadata.delete(key);
    else metadata.set(key, value);
    return metadata;
  };

  test('an unknown pre-tokenizer is named, with the supported ones', () => {
    expect(() => tokenizerFromGguf(changed('tokenizer.ggml.pre', 'tekken'))).toThrow(
      /"tekken" is not supported; supported: .*smollm.*llama-bpe.*qwen2/,
    );
    expect(() => tokenizerFromGguf(changed('tokenizer.ggml.pre', 'constructor'))).toThrow(/not supported/);
  });

  test('another tokenizer model is named', () => {
    expect(() => tokenizerFromGguf(changed('tokenizer.ggml.model', 'llama'))).toThrow(/"llama".*"gpt2"/);
    expect(() => tokenizerFromGguf(new Map())).toThrow(/tokenizer.ggml.model null/);
  });

  test.each([
    ['tokenizer.ggml.tokens', undefined],
    ['tokenizer.ggml.tokens', [1, 2]],
    ['tokenizer.ggml.merges', 'x'],
    ['tokenizer.ggml.token_type', [1]],
    ['tokenizer.ggml.bos_token_id', 512],
    ['tokenizer.ggml.add_bos_token', 'yes'],
    ['tokenizer.chat_template', 7],
  ])('a bad %s is named', (key, value) => {
    expect(() => tokenizerFromGguf(changed(key, value))).toThrow(key);
  });

  test('a merge that needs a missing token is named', () => {
    const source = tokenizerFromGguf(changed('tokenizer.ggml.merges', ['q zz']));
    expect(() => createTokenizer(source)).toThrow(/merges\[0\] needs token "zz"/);
  });
});

test('the metadata that a real file carries gives the template and the roles', () => {
  const source = tokenizerFromGguf(smollm2Metadata());
  expect(source.chatTemplate).toContain('<|im_start|>');
  expect(source.tokenizerConfig).toMatchObject({ bos_token: '<|im_start|>', eos_token: '<|im_end|>' });
});
