import { FileFormatError, UnsupportedError } from '../../src/errors.js';
import { createTokenizer } from '../../src/tokenizer/index.js';
import { readJson } from './fixtures.js';

const json = readJson<Record<string, unknown>>('models', 'tiny-llama', 'tokenizer.json');
const model = json['model'] as Record<string, unknown>;
const made = (changes: Record<string, unknown>) =>
  createTokenizer({ tokenizerJson: { ...json, ...changes } });

test.each([
  ['normalizer', { type: 'Nmt' }],
  ['pre_tokenizer', { type: 'UnicodeScripts' }],
  ['post_processor', { type: 'Odd' }],
  ['decoder', { type: 'CTC' }],
])('an unknown %s is named', (member, config) => {
  expect(() => made({ [member]: config })).toThrow(UnsupportedError);
  expect(() => made({ [member]: config })).toThrow(config.type);
});

test('an expression that JavaScript cannot hold is named', () => {
  const split = { type: 'Split', pattern: { Regex: '(?<=a+b' }, behavior: 'Isolated', invert: false };
  expect(() => made({ pre_tokenizer: split })).toThrow(UnsupportedError);
});

test.each([
  [{}, /model/],
  [null, /the file/],
  [{ ...json, model: { ...model, vocab: { a: 'b' } } }, /vocab\["a"\] is no token id/],
  [{ ...json, model: { ...model, vocab: { a: -1 } } }, /vocab/],
  [{ ...json, model: { ...model, merges: ['a'] } }, /merges\[0\] is not a pair/],
  [{ ...json, model: { ...model, merges: [['t', 'zzz']] } }, /merges\[0\] needs token "zzz"/],
  [{ ...json, model: { type: 'WordPiece', vocab: { a: 0 }, unk_token: '[UNK]' } }, /lacks the unknown token/],
  [{ ...json, added_tokens: [{ id: 1.5, content: 'x' }] }, /added_tokens/],
  [{ ...json, added_tokens: [{ id: 2 ** 31, content: 'x' }] }, /added_tokens/],
])('a broken file is refused (%#)', (tokenizerJson, message) => {
  expect(() => createTokenizer({ tokenizerJson })).toThrow(FileFormatError);
  expect(() => createTokenizer({ tokenizerJson })).toThrow(message);
});

test('a vocabulary may hold names that objects have already', () => {
  const vocab = { ...(model['vocab'] as object), constructor: 600, toString: 601 };
  Object.defineProperty(vocab, '__proto__', { value: 602, enumerable: true });
  const tokenizer = made({ model: { ...model, vocab } });
  expect([600, 601, 602].map((id) => tokenizer.decode([id]))).toEqual([
    'constructor',
    'toString',
    '__proto__',
  ]);
});

test('merges in the old form, as text, mean the same', () => {
  const merges = (model['merges'] as [string, string][]).map((pair) => pair.join(' '));
  const text = 'The bridge of Northgate was opened in 1887.';
  expect(made({ model: { ...model, merges } }).encode(text)).toEqual(made({}).encode(text));
});
