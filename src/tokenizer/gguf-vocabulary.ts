// A GGUF file's vocabulary in the form of a tokenizer.json. Takes the metadata as plain data, never the file.

import { FileFormatError, UnsupportedError } from '../errors.js';
import type { TokenizerSource } from './create-tokenizer.js';

/** Token kinds of GGUF; the rest are ordinary entries. */
const UNKNOWN = 2;
const CONTROL = 3;
const USER_DEFINED = 4;

const byteLevel = (divides: boolean) => ({ type: 'ByteLevel', add_prefix_space: false, use_regex: divides });
const isolated = (expression: string) => ({
  type: 'Split',
  pattern: { Regex: expression },
  behavior: 'Isolated',
  invert: false,
});
const sequence = (...pretokenizers: object[]) => ({ type: 'Sequence', pretokenizers });

/** The expression that Llama 3 and Qwen 2 share but for how many digits form a word. */
const wordsAndDigits = (digits: string): string =>
  `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*` +
  '|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';

interface PreTokenizer {
  readonly preTokenizer: object;
  readonly normalizer?: object;
  /** A word that is a token as it stands is not built by merging. */
  readonly ignoreMerges?: boolean;
  /** What `add_bos_token` means when the file does not say it. */
  readonly addsBegin?: boolean;
}

const GPT2: PreTokenizer = { preTokenizer: byteLevel(true) };
const LLAMA3: PreTokenizer = {
  preTokenizer: sequence(isolated(wordsAndDigits('\\p{N}{1,3}')), byteLevel(false)),
  ignoreMerges: true,
  addsBegin: true,
};
const QWEN2: PreTokenizer = {
  preTokenizer: sequence(isolated(wordsAndDigits('\\p{N}')), byteLevel(false)),
  normalizer: { type: 'NFC' },
};
const SMOLLM: PreTokenizer = {
  preTokenizer: sequence({ type: 'Digits', individual_digits: true }, byteLevel(true)),
};
/** What llama.cpp does for a file that names nothing better. */
const DEFAULT: PreTokenizer = {
  preTokenizer: sequence(
    isolated('[\\p{P}\\$\\+<=>\\^~\\|]+'),
    byteLevelWords(),
    isolated('\\p{N}+'),
    isolated('[0-9][0-9][0-9]'),
    byteLevel(false),
  ),
};

/** GPT-2's expression as a plain split, for use before other splits. */
function byteLevelWords(): object {
  return isolated("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)");
}

const PRE_TOKENIZERS: Readonly<Record<string, PreTokenizer>> = {
  default: DEFAULT,
  'gpt-2': GPT2,
  smollm: SMOLLM,
  'llama-bpe': LLAMA3,
  llama3: LLAMA3,
  'llama-v3': LLAMA3,
  qwen2: QWEN2,
  'deepseek-r1-qwen': QWEN2,
};

type Metadata = ReadonlyMap<string, unknown>;

function textArray(metadata: Metadata, key: string): readonly string[] {
  const value = metadata.get(key);
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
  throw new FileFormatError(`GGUF metadata: ${key} must be an array of strings`);
}

function numberArray(metadata: Metadata, key: string, length: number): ArrayLike<number> | null {
  const value = metadata.get(key);
  if (value === undefined) return null;
  const array =
    Array.isArray(value) || ArrayBuffer.isView(value) ? (value as ArrayLike<unknown> & object) : null;
  if (array === null || array.length !== length)
    throw new FileFormatError(
      `GGUF metadata: ${key} must be an array of ${length} numbers, one for each token`,
    );
  return Array.from(array, Number);
}

function flag(metadata: Metadata, key: string): boolean | undefined {
  const value = metadata.get(key);
  if (value === undefined || typeof value === 'boolean') return value;
  throw new FileFormatError(`GGUF metadata: ${key} must be a bool`);
}

/** Text of the token that a role such as `bos` names; null when the file names none. */
function roleToken(metadata: Metadata, role: string, tokens: readonly string[]): [number, string] | null {
  const key = `tokenizer.ggml.${role}_token_id`;
  const value = metadata.get(key);
  if (value === undefined) return null;
  const id = Number(value);
  const token = tokens[id];
  if (token === undefined)
    throw new FileFormatError(
      `GGUF metadata: ${key} is ${String(value)}, but there are ${tokens.length} tokens`,
    );
  return [id, token];
}

function preTokenizerOf(metadata: Metadata): PreTokenizer {
  const model = metadata.get('tokenizer.ggml.model');
  if (model !== 'gpt2')
    throw new UnsupportedError(
      `GGUF metadata: tokenizer.ggml.model ${JSON.stringify(model ?? null)} is not supported; supported: "gpt2"`,
    );
  const name = metadata.get('tokenizer.ggml.pre') ?? 'default';
  const known =
    typeof name === 'string' && Object.hasOwn(PRE_TOKENIZERS, name) ? PRE_TOKENIZERS[name] : undefined;
  if (known !== undefined) return known;
  throw new UnsupportedError(
    `GGUF metadata: pre-tokenizer ${JSON.stringify(name)} is not supported; supported: ` +
      Object.keys(PRE_TOKENIZERS).join(', '),
  );
}

/** Parts a merge at its first space that is not its first character. */
function mergePair(merge: string): [string, string] {
  const space = merge.indexOf(' ', 1);
  return space === -1 ? [merge, ''] : [merge.slice(0, space), merge.slice(space + 1)];
}

function wrapping(begin: [number, string] | null, end: [number, string] | null): object | null {
  if (begin === null && end === null) return null;
  const special = (token: [number, string] | null) =>
    token === null ? [] : [{ SpecialToken: { id: token[1], type_id: 0 } }];
  const known = [begin, end].flatMap((token) =>
    token === null ? [] : [[token[1], { id: token[1], ids: [token[0]], tokens: [token[1]] }] as const],
  );
  return {
    type: 'TemplateProcessing',
    single: [...special(begin), { Sequence: { id: 'A', type_id: 0 } }, ...special(end)],
    special_tokens: Object.fromEntries(known),
  };
}

interface Vocabulary {
  readonly vocab: Readonly<Record<string, number>>;
  readonly added: readonly object[];
}

function divideVocabulary(
  tokens: readonly string[],
  kinds: ArrayLike<number> | null,
  named: ReadonlySet<number>,
): Vocabulary {
  const vocab: [string, number][] = [];
  const added: object[] = [];
  tokens.forEach((content, id) => {
    const kind = kinds?.[id] ?? (named.has(id) ? CONTROL : 1);
    if (content === '' || ![UNKNOWN, CONTROL, USER_DEFINED].includes(kind)) vocab.push([content, id]);
    else added.push({ id, content, special: kind !== USER_DEFINED, normalized: false });
  });
  return { vocab: Object.fromEntries(vocab), added };
}

/**
 * @param metadata GGUF keys to values; the `tokenizer.*` ones are read
 * @returns what createTokenizer takes
 * @throws {UnsupportedError} naming a tokenizer model or pre-tokenizer that is not supported, with those that are
 * @throws {FileFormatError} naming the key that is missing or has the wrong form
 */
export function tokenizerFromGguf(metadata: Metadata): TokenizerSource {
  const pre = preTokenizerOf(metadata);
  const tokens = textArray(metadata, 'tokenizer.ggml.tokens');
  const merges = textArray(metadata, 'tokenizer.ggml.merges');
  const kinds = numberArray(metadata, 'tokenizer.ggml.token_type', tokens.length);
  const role = (name: string) => roleToken(metadata, name, tokens);
  const roles = { bos: role('bos'), eos: role('eos'), unk: role('unknown'), pad: role('padding') };
  const named = new Set(Object.values(roles).flatMap((token) => (token === null ? [] : [token[0]])));
  const { vocab, added } = divideVocabulary(tokens, kinds, named);
  const addsBegin = flag(metadata, 'tokenizer.ggml.add_bos_token') ?? pre.addsBegin ?? false;
  const addsEnd = flag(metadata, 'tokenizer.ggml.add_eos_token') ?? false;
  const template = metadata.get('tokenizer.chat_template');
  if (template !== undefined && typeof template !== 'string')
    throw new FileFormatError('GGUF metadata: tokenizer.chat_template must be a string');
  return {
    tokenizerJson: {
      added_tokens: added,
      normalizer: pre.normalizer ?? null,
      pre_tokenizer: pre.preTokenizer,
      post_processor: wrapping(addsBegin ? roles.bos : null, addsEnd ? roles.eos : null),
      decoder: { type: 'ByteLevel' },
      model: { type: 'BPE', vocab, merges: merges.map(mergePair), ignore_merges: pre.ignoreMerges === true },
    },
    tokenizerConfig: Object.fromEntries(
      Object.entries(roles).flatMap(([name, token]) => (token === null ? [] : [[`${name}_token`, token[1]]])),
    ),
    chatTemplate: template,
  };
}
