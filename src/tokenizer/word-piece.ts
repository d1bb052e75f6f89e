// WordPiece of one word: the longest vocabulary entry from the left, again and again; a word with a rest that
// no entry begins is unknown as a whole.

import { FileFormatError } from '../errors.js';
import type { EncodeWord } from './bpe.js';
import type { ModelConfig } from './tokenizer-json.js';

/** Whether a word has more than `limit` code points, each of which is one or two units. */
const isTooLong = (word: string, limit: number): boolean =>
  word.length > limit && (word.length > 2 * limit || [...word].length > limit);

/** @throws {FileFormatError} when the vocabulary has no unknown token */
export function createWordPiece(model: ModelConfig): EncodeWord {
  const prefix = model.continuingSubwordPrefix ?? '##';
  const unknown = model.vocab.get(model.unknownToken ?? '[UNK]');
  if (unknown === undefined)
    throw new FileFormatError(`tokenizer.json: the vocabulary lacks the unknown token ${model.unknownToken}`);
  let longest = 0;
  for (const token of model.vocab.keys()) longest = Math.max(longest, token.length);

  const pieceAt = (word: string, start: number): [id: number, end: number] | null => {
    const lead = start === 0 ? '' : prefix;
    for (let end = Math.min(word.length, start + longest - lead.length); end > start; end--) {
      const id = model.vocab.get(lead + word.slice(start, end));
      if (id !== undefined) return [id, end];
    }
    return null;
  };

  return (word, ids) => {
    if (isTooLong(word, model.maxInputCharsPerWord)) {
      ids.push(unknown);
      return;
    }
    const before = ids.length;
    let start = 0;
    while (start < word.length) {
      const piece = pieceAt(word, start);
      if (piece === null) {
        ids.length = before;
        ids.push(unknown);
        return;
      }
      ids.push(piece[0]);
      start = piece[1];
    }
  };
}
