// Text to words before the model sees it, by the rules of Hugging Face's Rust library. A word keeps its own
// characters here; byte-level models turn it into bytes themselves.

import { UnsupportedError } from '../errors.js';
import { compilePattern } from './normalizers.js';
import type { PartConfig } from './tokenizer-json.js';

/** Words of a text; `first` says that the text stands at the very beginning of the input. */
export type PreTokenize = (text: string, first: boolean) => string[];

/** GPT-2's expression. `\s` is spelled out because JavaScript's adds U+FEFF and lacks U+0085. */
const GPT2 =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

const PUNCTUATION = '\\p{P}!-/:-@\\[-`{-~';

type Behaviour = 'isolated' | 'removed' | 'mergedwithprevious' | 'mergedwithnext' | 'contiguous';

interface Piece {
  readonly text: string;
  readonly match: boolean;
}

/** The whole text as alternating matches and gaps, in order. `invert` swaps the two. */
function pieces(text: string, pattern: RegExp, invert: boolean): Piece[] {
  const found: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    if (match[0] === '') continue;
    if (match.index > end) found.push({ text: text.slice(end, match.index), match: invert });
    found.push({ text: match[0], match: !invert });
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push({ text: text.slice(end), match: invert });
  return found;
}

function joined(parts: readonly Piece[], startsNew: (index: number) => boolean): string[] {
  const words: string[] = [];
  parts.forEach((piece, index) => {
    if (index === 0 || startsNew(index)) words.push(piece.text);
    else words[words.length - 1] += piece.text;
  });
  return words;
}

function split(text: string, pattern: RegExp, behaviour: Behaviour, invert = false): string[] {
  const parts = pieces(text, pattern, invert);
  const matches = (index: number): boolean => (parts[index] as Piece).match;
  switch (behaviour) {
    case 'isolated':
      return parts.map((piece) => piece.text);
    case 'removed':
      return parts.filter((piece) => !piece.match).map((piece) => piece.text);
    case 'contiguous':
      return joined(parts, (index) => matches(index) !== matches(index - 1));
    case 'mergedwithprevious':
      return joined(parts, (index) => !matches(index) || matches(index - 1));
    case 'mergedwithnext':
      return joined(parts, (index) => matches(index) || !matches(index - 1));
  }
}

function behaviourOf(config: PartConfig, fallback: Behaviour): Behaviour {
  const name = String(config['behavior'] ?? fallback).toLowerCase();
  if (!['isolated', 'removed', 'mergedwithprevious', 'mergedwithnext', 'contiguous'].includes(name))
    throw new UnsupportedError(`tokenizer.json: split behaviour "${name}" is not supported`);
  return name as Behaviour;
}

function splitBy(pattern: RegExp, behaviour: Behaviour, invert = false): PreTokenize {
  return (text) => split(text, pattern, behaviour, invert);
}

function byteLevel(config: PartConfig): PreTokenize {
  const prefixes = config['add_prefix_space'] === true;
  const divides = config['use_regex'] !== false;
  return (text) => {
    const whole = prefixes && !text.startsWith(' ') ? ` ${text}` : text;
    return divides ? (whole.match(GPT2) ?? []) : [whole];
  };
}

function metaspace(config: PartConfig): PreTokenize {
  const mark = String(config['replacement'] ?? '\u2581');
  const scheme = config['prepend_scheme'] ?? (config['add_prefix_space'] === false ? 'never' : 'always');
  const divides = config['split'] !== false;
  const pattern = new RegExp(mark, 'gu');
  return (text, first) => {
    const marked = text.replaceAll(' ', mark);
    const prepends = scheme === 'always' || (scheme === 'first' && first);
    const whole = prepends && !marked.startsWith(mark) ? mark + marked : marked;
    return divides ? split(whole, pattern, 'mergedwithnext') : [whole];
  };
}

function sequence(config: PartConfig): PreTokenize {
  const configs = (config['pretokenizers'] ?? []) as PartConfig[];
  const bytes = configs.findIndex((step) => step.type === 'ByteLevel');
  if (bytes !== -1 && bytes !== configs.length - 1)
    throw new UnsupportedError(
      `tokenizer.json: pre-tokenizer "${configs[bytes + 1]?.type}" after "ByteLevel" is not supported`,
    );
  const steps = configs.map(createPreTokenizer);
  return (text, first) =>
    steps.reduce<string[]>(
      (words, step) => words.flatMap((word, index) => step(word, first && index === 0)),
      [text],
    );
}

const MAKERS: Readonly<Record<string, (config: PartConfig) => PreTokenize>> = {
  ByteLevel: byteLevel,
  Digits: (config) => splitBy(/\p{N}/gu, config['individual_digits'] === true ? 'isolated' : 'contiguous'),
  Split: (config) =>
    splitBy(compilePattern(config['pattern']), behaviourOf(config, 'isolated'), config['invert'] === true),
  Punctuation: (config) => splitBy(new RegExp(`[${PUNCTUATION}]`, 'gu'), behaviourOf(config, 'isolated')),
  BertPreTokenizer: () => {
    const words = new RegExp(`[^\\p{White_Space}${PUNCTUATION}]+|[${PUNCTUATION}]`, 'gu');
    return (text) => text.match(words) ?? [];
  },
  Whitespace: () => splitBy(compilePattern({ Regex: '\\w+|[^\\w\\s]+' }), 'removed', true),
  WhitespaceSplit: () => splitBy(/\p{White_Space}/gu, 'removed'),
  Metaspace: metaspace,
  Sequence: sequence,
};

/**
 * @param config the `pre_tokenizer` of tokenizer.json; null leaves the text one word
 * @throws {UnsupportedError} with the name of an unknown part.
 */
export function createPreTokenizer(config: PartConfig | null): PreTokenize {
  if (config === null) return (text) => [text];
  const make = MAKERS[config.type];
  if (make === undefined)
    throw new UnsupportedError(
      `tokenizer.json: pre-tokenizer "${config.type}" is not supported; supported: ${Object.keys(MAKERS).join(', ')}`,
    );
  return make(config);
}

/** Whether words are turned into GPT-2's byte alphabet before the model. */
export function isByteLevel(config: PartConfig | null): boolean {
  if (config === null) return false;
  if (config.type === 'ByteLevel') return true;
  return config.type === 'Sequence' && ((config['pretokenizers'] ?? []) as PartConfig[]).some(isByteLevel);
}
