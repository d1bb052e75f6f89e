// Byte-pair encoding of one word: the pair with the lowest rank is merged, the leftmost first, until none is left.
// Short words are scanned; long ones use a heap and a linked list, so time stays n log n on any input.

import { FileFormatError, UnsupportedError } from '../errors.js';
import { BYTE_CHARACTERS, bytesOfToken } from './byte-alphabet.js';
import { createPairTable, type PairTable } from './pair-table.js';
import type { ModelConfig } from './tokenizer-json.js';

/** Appends the ids of one word. */
export type EncodeWord = (word: string, ids: number[]) => void;

/** Up to this many symbols a scan for the lowest rank beats the heap. */
const SCAN_LIMIT = 48;
const CACHED_WORD_LENGTH = 32;
const CACHED_WORDS = 20_000;
/** Heap keys are rank * POSITIONS + position; both stay below 2^26, so a key is an exact number. */
const POSITIONS = 2 ** 26;

function mergeByScan(symbols: number[], pairs: PairTable): void {
  for (;;) {
    let best = -1;
    let bestRank = Number.POSITIVE_INFINITY;
    let at = 0;
    for (let i = 0; i + 1 < symbols.length; i++) {
      const entry = pairs.find(symbols[i] as number, symbols[i + 1] as number);
      if (entry !== -1 && pairs.rank(entry) < bestRank) {
        best = entry;
        bestRank = pairs.rank(entry);
        at = i;
      }
    }
    if (best === -1) return;
    symbols[at] = pairs.merged(best);
    symbols.splice(at + 1, 1);
  }
}

/** A heap of numbers, smallest first, of fixed capacity. */
function createHeap(capacity: number): { push(key: number): void; pop(): number; size(): number } {
  const keys = new Float64Array(capacity);
  let size = 0;
  return {
    size: () => size,
    push(key) {
      let at = size++;
      while (at > 0) {
        const parent = (at - 1) >> 1;
        if ((keys[parent] as number) <= key) break;
        keys[at] = keys[parent] as number;
        at = parent;
      }
      keys[at] = key;
    },
    pop() {
      const top = keys[0] as number;
      const last = keys[--size] as number;
      let at = 0;
      for (;;) {
        let child = 2 * at + 1;
        if (child >= size) break;
        if (child + 1 < size && (keys[child + 1] as number) < (keys[child] as number)) child++;
        if ((keys[child] as number) >= last) break;
        keys[at] = keys[child] as number;
        at = child;
      }
      keys[at] = last;
      return top;
    },
  };
}

function mergeByHeap(symbols: Int32Array, pairs: PairTable, ids: number[]): void {
  const count = symbols.length;
  const next = Int32Array.from({ length: count }, (_, i) => (i + 1 < count ? i + 1 : -1));
  const previous = Int32Array.from({ length: count }, (_, i) => i - 1);
  // Every merge removes a symbol and offers at most two new pairs.
  const heap = createHeap(3 * count);
  const pairAt = (at: number): number => {
    const after = next[at] as number;
    return after === -1 ? -1 : pairs.find(symbols[at] as number, symbols[after] as number);
  };
  const offer = (at: number): void => {
    const entry = pairAt(at);
    if (entry !== -1) heap.push(pairs.rank(entry) * POSITIONS + at);
  };
  for (let i = 0; i + 1 < count; i++) offer(i);
  while (heap.size() > 0) {
    const key = heap.pop();
    const at = key % POSITIONS;
    if (symbols[at] === -1) continue;
    const entry = pairAt(at);
    // A stale offer: the pair at this place has changed since.
    if (entry === -1 || pairs.rank(entry) * POSITIONS + at !== key) continue;
    const gone = next[at] as number;
    const after = next[gone] as number;
    symbols[at] = pairs.merged(entry);
    symbols[gone] = -1;
    next[at] = after;
    if (after !== -1) previous[after] = at;
    const before = previous[at] as number;
    if (before !== -1) offer(before);
    offer(at);
  }
  for (let i = 0; i !== -1; i = next[i] as number) ids.push(symbols[i] as number);
}

function createPairs(model: ModelConfig): PairTable {
  const idOf = (token: string, rank: number): number => {
    const id = model.vocab.get(token);
    if (id === undefined)
      throw new FileFormatError(
        `tokenizer.json: model.merges[${rank}] needs token ${JSON.stringify(token)}, which the vocabulary lacks`,
      );
    return id;
  };
  return createPairTable(
    model.merges.map(([first, second], rank) => [
      idOf(first, rank),
      idOf(second, rank),
      idOf(first + second, rank),
    ]),
  );
}

/** Turns a word into its first symbols. */
type Symbolise = (word: string, symbols: number[]) => void;

function unknownAppender(model: ModelConfig): (symbols: number[], afterUnknown: boolean) => boolean {
  const unknown = model.unknownToken === null ? undefined : model.vocab.get(model.unknownToken);
  return (symbols, afterUnknown) => {
    if (unknown === undefined) return false;
    if (!(afterUnknown && model.fuseUnknown)) symbols.push(unknown);
    return true;
  };
}

function byteSymbols(model: ModelConfig): Symbolise {
  const ids = BYTE_CHARACTERS.map((character) => model.vocab.get(character) ?? -1);
  const unknown = unknownAppender(model);
  return (word, symbols) => {
    let afterUnknown = false;
    for (const byte of Buffer.from(word, 'utf8')) {
      const id = ids[byte] as number;
      if (id === -1) afterUnknown = unknown(symbols, afterUnknown);
      else {
        symbols.push(id);
        afterUnknown = false;
      }
    }
  };
}

function characterSymbols(model: ModelConfig): Symbolise {
  const unknown = unknownAppender(model);
  const bytes = Array.from({ length: 256 }, (_, byte) =>
    model.vocab.get(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`),
  );
  return (word, symbols) => {
    let afterUnknown = false;
    for (const character of word) {
      const id = model.vocab.get(character);
      const spelled =
        id === undefined && model.byteFallback ? [...Buffer.from(character)].map((b) => bytes[b]) : [];
      if (id !== undefined) symbols.push(id);
      else if (spelled.length > 0 && !spelled.includes(undefined)) symbols.push(...(spelled as number[]));
      else {
        afterUnknown = unknown(symbols, afterUnknown);
        continue;
      }
      afterUnknown = false;
    }
  };
}

/**
 * Words that are tokens as they stand, for models that prefer those to merging. Added tokens are not among them,
 * should a vocabulary list them as well: words come from plain text, which must not become a control token.
 */
function wholeWords(model: ModelConfig, options: BpeOptions): ReadonlyMap<string, number> {
  const words = new Map<string, number>();
  if (!model.ignoreMerges) return words;
  for (const [token, id] of model.vocab) {
    if (options.addedIds.has(id)) continue;
    if (!options.byteLevel) {
      words.set(token, id);
      continue;
    }
    const bytes = bytesOfToken(token);
    const text = bytes === null ? '' : Buffer.from(bytes).toString('utf8');
    if (text !== '' && Buffer.from(text).equals(bytes as Uint8Array)) words.set(text, id);
  }
  return words;
}

export interface BpeOptions {
  /** Words are turned into bytes in GPT-2's alphabet; else into characters, with byte fallback. */
  readonly byteLevel: boolean;
  /** Ids that no word may give. */
  readonly addedIds: ReadonlySet<number>;
}

/**
 * The BPE model over words.
 * @throws {FileFormatError} when a merge names a token that the vocabulary lacks
 * @throws {UnsupportedError} for a subword prefix or word suffix, which the supported models do not use
 */
export function createBpe(model: ModelConfig, options: BpeOptions): EncodeWord {
  if (model.continuingSubwordPrefix !== null || model.endOfWordSuffix !== null)
    throw new UnsupportedError('tokenizer.json: BPE with a subword prefix or a word suffix is not supported');
  const pairs = createPairs(model);
  const symbolise = options.byteLevel ? byteSymbols(model) : characterSymbols(model);
  const whole = wholeWords(model, options);
  const cache = new Map<string, readonly number[]>();
  return (word, ids) => {
    const id = whole.get(word);
    if (id !== undefined) {
      ids.push(id);
      return;
    }
    const cached = cache.get(word);
    if (cached !== undefined) {
      for (const cachedId of cached) ids.push(cachedId);
      return;
    }
    const symbols: number[] = [];
    symbolise(word, symbols);
    if (symbols.length === 0) return;
    if (symbols.length > SCAN_LIMIT) {
      mergeByHeap(Int32Array.from(symbols), pairs, ids);
      return;
    }
    mergeByScan(symbols, pairs);
    for (const symbol of symbols) ids.push(symbol);
    if (word.length > CACHED_WORD_LENGTH) return;
    if (cache.size >= CACHED_WORDS) cache.clear();
    cache.set(word, symbols);
  };
}
