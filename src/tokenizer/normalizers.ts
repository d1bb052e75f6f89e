// Text to text before splitting, by the rules of Hugging Face's Rust library.

import { UnsupportedError } from '../errors.js';
import { SequenceNormalizer, SplitPreTokenizer } from './library.js';
import type { PartConfig } from './tokenizer-json.js';

export type Normalize = (text: string) => string;

/** Code points that the BERT rules set apart as ideographs; kana and hangul are not among them. */
const IDEOGRAPHS =
  /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu;

/**
 * Control, format and private characters and U+FFFD, but not tab and line ends. The Rust library knows the format
 * characters of Unicode 8, so the later ones stay.
 */
const UNWANTED = /(?![\t\n\r\u0890\u0891\u08e2\u{110cd}\u{13430}-\u{1343f}])[\p{Cc}\p{Cf}\p{Co}\ufffd]/gu;

/**
 * Lower case one character at a time. JavaScript alone writes a capital sigma at the end of a word as final sigma,
 * which the vocabularies were not made with.
 */
const lowerCase: Normalize = (text) => text.replaceAll('\u03a3', '\u03c3').toLowerCase();

/** Marks in a row beyond which a run is normalised in parts. No writing system comes near it. */
const MARKS_AT_ONCE = 256;
const MARK_RUN = new RegExp(`\\p{M}{${MARKS_AT_ONCE}}`, 'gu');

/**
 * Unicode normalisation in linear time. The engine sorts a run of combining marks by insertion, so a run of mixed
 * marks takes quadratic time: two megabytes of them would hold the thread for an hour.
 */
function normalizeForm(text: string, form: 'NFC' | 'NFD' | 'NFKC' | 'NFKD'): string {
  let result = '';
  let end = 0;
  for (const run of text.matchAll(MARK_RUN)) {
    const stop = run.index + run[0].length;
    result += text.slice(end, stop).normalize(form);
    end = stop;
  }
  return result + text.slice(end).normalize(form);
}

function bertNormalizer(config: PartConfig): Normalize {
  const lower = config['lowercase'] !== false;
  const cleans = config['clean_text'] !== false;
  const spacesIdeographs = config['handle_chinese_chars'] !== false;
  const stripsAccents = (config['strip_accents'] ?? lower) === true;
  return (text) => {
    let result = text;
    if (cleans) result = result.replace(UNWANTED, '').replace(/\p{White_Space}/gu, ' ');
    if (spacesIdeographs) result = result.replace(IDEOGRAPHS, ' $& ');
    if (stripsAccents) result = normalizeForm(result, 'NFD').replace(/\p{Mn}/gu, '');
    return lower ? lowerCase(result) : result;
  };
}

function replaceNormalizer(config: PartConfig): Normalize {
  const pattern = compilePattern(config['pattern']);
  const content = String(config['content'] ?? '');
  return (text) => text.replace(pattern, () => content);
}

/**
 * A pattern of tokenizer.json, `{"String"}` or `{"Regex"}` in Oniguruma's syntax, as a global JavaScript expression.
 * The library's translation is used: it knows where `\s`, `\w` and `(?i:)` differ.
 * @throws {UnsupportedError} when the expression cannot be expressed in JavaScript.
 */
export function compilePattern(pattern: unknown): RegExp {
  try {
    const split = new SplitPreTokenizer({ type: 'Split', pattern, invert: true });
    if (split.pattern !== null) return split.pattern;
  } catch (cause) {
    throw new UnsupportedError(`tokenizer.json: pattern ${JSON.stringify(pattern)} cannot be used`, {
      cause,
    });
  }
  throw new UnsupportedError(
    `tokenizer.json: pattern ${JSON.stringify(pattern)} is neither String nor Regex`,
  );
}

const parts = (config: PartConfig): PartConfig[] => (config['normalizers'] ?? []) as PartConfig[];

/** Parts taken from the library as they are. */
function libraryNormalizer(config: PartConfig): Normalize {
  const normalizer = new SequenceNormalizer({ normalizers: [config] });
  return (text) => normalizer.normalize(text);
}

const MAKERS: Readonly<Record<string, (config: PartConfig) => Normalize>> = {
  BertNormalizer: bertNormalizer,
  NFC: () => (text) => normalizeForm(text, 'NFC'),
  NFD: () => (text) => normalizeForm(text, 'NFD'),
  NFKC: () => (text) => normalizeForm(text, 'NFKC'),
  NFKD: () => (text) => normalizeForm(text, 'NFKD'),
  Lowercase: () => lowerCase,
  Prepend: (config) => (text) => (text === '' ? '' : String(config['prepend'] ?? '') + text),
  Replace: replaceNormalizer,
  Strip: libraryNormalizer,
  StripAccents: libraryNormalizer,
  Precompiled: libraryNormalizer,
  Sequence: (config) => {
    const steps = parts(config).map(createNormalizer);
    return (text) => steps.reduce((current, step) => step(current), text);
  },
};

/**
 * @param config the `normalizer` of tokenizer.json; null changes nothing
 * @throws {UnsupportedError} with the name of an unknown part.
 */
export function createNormalizer(config: PartConfig | null): Normalize {
  if (config === null) return (text) => text;
  const make = MAKERS[config.type];
  if (make === undefined)
    throw new UnsupportedError(
      `tokenizer.json: normalizer "${config.type}" is not supported; supported: ${Object.keys(MAKERS).join(', ')}`,
    );
  return make(config);
}
