// Puts the parts of a tokenizer.json together behind the Tokenizer interface.

import { wellFormed } from '../util/well-formed.js';
import { createTokenSplitter, type Section } from './added-tokens.js';
import { createBpe, type EncodeWord } from './bpe.js';
import { createChat } from './chat.js';
import { createDetokenizer, decodeBytes } from './detokenizer.js';
import { createNormalizer } from './normalizers.js';
import { wrappingOf } from './post-processor.js';
import { createPreTokenizer, isByteLevel } from './pre-tokenizers.js';
import { createTokenBytes, type TokenBytes } from './token-bytes.js';
import type { Tokenizer } from './tokenizer.js';
import { parseTokenizerConfig, parseTokenizerJson, type TokenizerJson } from './tokenizer-json.js';
import { createUnigram } from './unigram.js';
import { createWordPiece } from './word-piece.js';

export interface TokenizerSource {
  /** A parsed tokenizer.json. Its truncation and padding are left out of account. */
  readonly tokenizerJson: unknown;
  /** A parsed tokenizer_config.json. */
  readonly tokenizerConfig?: unknown;
  /** Text of chat_template.jinja; wins over the one in tokenizer_config.json. */
  readonly chatTemplate?: string | undefined;
}

function wordEncoder(json: TokenizerJson): EncodeWord {
  if (json.model.type === 'WordPiece') return createWordPiece(json.model);
  if (json.model.type === 'Unigram') return createUnigram(json.model);
  const addedIds = new Set(json.addedTokens.map((token) => token.id));
  return createBpe(json.model, { byteLevel: isByteLevel(json.preTokenizer), addedIds });
}

/** Appends the ids of a stretch of text that holds no added token. */
type EncodeText = (text: string, first: boolean, ids: number[]) => void;

function decodeAll(tokens: TokenBytes, ids: readonly number[], skips: (id: number) => boolean): string {
  const bytes = tokens.join(ids.filter((id) => !skips(id)));
  return decodeBytes(tokens.dropsFirstSpace && bytes[0] === 0x20 ? bytes.subarray(1) : bytes);
}

/**
 * The fewest tokens that a text of so many bytes can give, for refusing a long text before it is encoded. Unicode's
 * composed form can be a third as long as the text (three jamo to one syllable).
 */
function shortestCount(json: TokenizerJson, tokens: TokenBytes): (byteLength: number) => number {
  const composes = json.normalizer !== null && json.normalizer.type !== 'NFC' ? null : json.normalizer;
  const bounded = json.model.type === 'BPE' && isByteLevel(json.preTokenizer);
  if (!bounded || (json.normalizer !== null && composes === null)) return () => 0;
  const bytesPerToken = tokens.longest * (composes === null ? 1 : 3);
  return (byteLength) => Math.ceil(byteLength / bytesPerToken);
}

/**
 * A tokenizer from the files that Hugging Face models carry.
 * @throws {FileFormatError} when a file breaks its format
 * @throws {UnsupportedError} naming a part that is not supported, with the list of those that are
 */
export function createTokenizer(source: TokenizerSource): Tokenizer {
  const json = parseTokenizerJson(source.tokenizerJson);
  const config = parseTokenizerConfig(source.tokenizerConfig);
  const normalize = createNormalizer(json.normalizer);
  const preTokenize = createPreTokenizer(json.preTokenizer);
  const encodeWord = wordEncoder(json);
  const tokens = createTokenBytes(json);
  const wrapping = wrappingOf(json.postProcessor);
  const splitRaw = createTokenSplitter(json.addedTokens.filter((token) => !token.normalized));
  const splitNormalized = createTokenSplitter(
    json.addedTokens.filter((token) => token.normalized),
    (token) => normalize(token.content),
  );
  const specialIds = new Set(json.addedTokens.filter((token) => token.special).map((token) => token.id));

  const encodeNormalized: EncodeText = (text, first, ids) => {
    for (const word of preTokenize(text, first)) encodeWord(word, ids);
  };
  const encodePlain = (text: string): number[] => {
    const ids: number[] = [];
    const normalized = normalize(wellFormed(text));
    if (normalized !== '') encodeNormalized(normalized, true, ids);
    return ids;
  };
  const appendSections = (sections: Section[], ids: number[], appendText: EncodeText): void => {
    for (const section of sections)
      if ('id' in section) ids.push(section.id);
      else appendText(section.text, section.start === 0, ids);
  };
  const encode = (text: string): number[] => {
    const ids: number[] = [];
    appendSections(splitRaw(wellFormed(text)), ids, (raw, first) => {
      appendSections(splitNormalized(normalize(raw)), ids, (part, begins) => {
        encodeNormalized(part, first && begins, ids);
      });
    });
    return ids;
  };
  const wrap = (ids: readonly number[]): number[] => [...wrapping.before, ...ids, ...wrapping.after];
  const skipping = (skips: boolean | undefined) => (id: number) => skips === true && specialIds.has(id);

  return {
    vocabSize: tokens.size,
    specialIds,
    addedTokens: new Map(json.addedTokens.map((token) => [token.content, token.id])),
    encodePlain,
    encode: (text, options) => (options?.wrap === true ? wrap(encode(text)) : encode(text)),
    wrap,
    minimumTokens: shortestCount(json, tokens),
    decode: (ids, options) => decodeAll(tokens, ids, skipping(options?.skipSpecial)),
    tokenBytes: (id) => tokens.get(id).slice(),
    createDetokenizer: (options) => createDetokenizer(tokens, skipping(options?.skipSpecial)),
    ...createChat({
      template: source.chatTemplate ?? config.chatTemplate,
      named: config.named,
      addedTokens: json.addedTokens,
      encodeText: (text, first, ids) => encodeNormalized(normalize(wellFormed(text)), first, ids),
    }),
  };
}
