// What each token id stands for, as bytes. Decoding is putting these bytes side by side, which is what makes
// decoding a stream give the same text as decoding the whole.

import { UnsupportedError } from '../errors.js';
import { bytesOfToken } from './byte-alphabet.js';
import { isByteLevel } from './pre-tokenizers.js';
import type { PartConfig, TokenizerJson } from './tokenizer-json.js';

export interface TokenBytes {
  /** Highest id plus one; ids between may be free. */
  readonly size: number;
  /** Bytes of the longest token. */
  readonly longest: number;
  /** Sentence-piece and WordPiece models write a space before the first word that the text did not have. */
  readonly dropsFirstSpace: boolean;
  /** A view, not a copy; empty for an id that no token has. */
  get(id: number): Uint8Array;
  /** The bytes of these side by side. */
  join(ids: readonly number[]): Uint8Array;
}

type Spell = (token: string) => Uint8Array;

const utf8 = (text: string): Uint8Array => Buffer.from(text, 'utf8');

/** Spaces that the WordPiece decoder takes away in front of punctuation and contractions. */
const tidy = (piece: string): string =>
  piece.replace(/^ ([.?!,]|n't|'m|'s|'ve|'re)/, '$1').replace(/^ do not/, " don't");

function wordPieceSpeller(decoder: PartConfig): Spell {
  const prefix = String(decoder['prefix'] ?? '##');
  const cleans = decoder['cleanup'] === true;
  return (token) => {
    if (token.startsWith(prefix)) return utf8(token.slice(prefix.length));
    return utf8(cleans ? tidy(` ${token}`) : ` ${token}`);
  };
}

function sentencePieceSpeller(mark: string): Spell {
  return (token) => {
    const byte = /^<0x([0-9A-F]{2})>$/i.exec(token);
    return byte ? Uint8Array.of(Number.parseInt(byte[1] as string, 16)) : utf8(token.replaceAll(mark, ' '));
  };
}

interface Speller {
  readonly spell: Spell;
  /** For added tokens, whose names are text and not in the model's alphabet. */
  readonly spellAdded?: Spell;
  readonly dropsFirstSpace: boolean;
}

function spellerOf(json: TokenizerJson): Speller {
  const decoder = json.decoder;
  if (decoder?.type === 'ByteLevel' || (decoder === null && isByteLevel(json.preTokenizer)))
    return { spell: (token) => bytesOfToken(token) ?? utf8(token), spellAdded: utf8, dropsFirstSpace: false };
  if (decoder?.type === 'WordPiece') return { spell: wordPieceSpeller(decoder), dropsFirstSpace: true };
  if (decoder?.type === 'Metaspace') {
    const keeps = decoder['prepend_scheme'] === 'never' || decoder['add_prefix_space'] === false;
    return {
      spell: sentencePieceSpeller(String(decoder['replacement'] ?? '\u2581')),
      dropsFirstSpace: !keeps,
    };
  }
  if (decoder?.type === 'Sequence') {
    const parts = (decoder['decoders'] ?? []) as PartConfig[];
    if (parts.every((part) => ['Replace', 'ByteFallback', 'Fuse', 'Strip'].includes(part.type)))
      return {
        spell: sentencePieceSpeller('\u2581'),
        dropsFirstSpace: parts.some((part) => part.type === 'Strip' && part['start'] === 1),
      };
  }
  throw new UnsupportedError(
    `tokenizer.json: decoder ${decoder === null ? 'null' : `"${decoder.type}"`} is not supported; supported: ` +
      'ByteLevel, WordPiece, Metaspace, Sequence of Replace, ByteFallback, Fuse and Strip',
  );
}

/** @throws {UnsupportedError} for a decoder whose text depends on more than the token itself */
export function createTokenBytes(json: TokenizerJson): TokenBytes {
  const { spell, spellAdded = spell, dropsFirstSpace } = spellerOf(json);
  const spelled: Uint8Array[] = [];
  for (const [token, id] of json.model.vocab) spelled[id] = spell(token);
  for (const token of json.addedTokens) spelled[token.id] = spellAdded(token.content);
  const size = spelled.length;
  const offsets = new Int32Array(size + 1);
  let longest = 0;
  for (let id = 0; id < size; id++) {
    const length = spelled[id]?.length ?? 0;
    longest = Math.max(longest, length);
    offsets[id + 1] = (offsets[id] as number) + length;
  }
  const bytes = new Uint8Array(offsets[size] as number);
  spelled.forEach((token, id) => {
    bytes.set(token, offsets[id]);
  });
  const start = (id: number): number => offsets[id] ?? 0;
  const end = (id: number): number => offsets[id + 1] ?? start(id);
  return {
    size,
    longest,
    dropsFirstSpace,
    get: (id) => bytes.subarray(start(id), end(id)),
    join(ids) {
      const joined = new Uint8Array(ids.reduce((sum, id) => sum + end(id) - start(id), 0));
      let at = 0;
      // Tokens are short: a view of each would cost many times what its bytes do.
      for (const id of ids)
        for (let from = start(id), to = end(id); from < to; from++) joined[at++] = bytes[from] as number;
      return joined;
    },
  };
}
