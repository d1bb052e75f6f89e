// Text that remembers which sampled tokens it came from, so that what is shown and the log-probabilities
// beside it always speak of the same tokens.

import type { Tokenizer } from '../tokenizer/index.js';
import { createSampledText } from '../trajectory/index.js';

/** A stretch of sampled text and the tokens of its turn, `first` to `last`, that its bytes belong to. */
export interface TokenRun {
  readonly text: string;
  readonly first: number;
  readonly last: number;
}

export const runsText = (runs: readonly TokenRun[]): string => runs.map((run) => run.text).join('');

/** Runs in a row, taken off the front by number of characters (UTF-16 units). */
export interface RunQueue {
  readonly text: string;
  push(run: TokenRun): void;
  take(length: number): TokenRun[];
}

export function createRunQueue(): RunQueue {
  let runs: TokenRun[] = [];
  let text = '';
  return {
    get text() {
      return text;
    },
    push(run) {
      if (run.text === '') return;
      runs.push(run);
      text += run.text;
    },
    take(length) {
      const taken: TokenRun[] = [];
      let left = Math.min(length, text.length);
      text = text.slice(left);
      while (left > 0) {
        const head = runs[0] as TokenRun;
        if (head.text.length <= left) {
          taken.push(head);
          runs = runs.slice(1);
        } else {
          taken.push({ ...head, text: head.text.slice(0, left) });
          runs[0] = { ...head, text: head.text.slice(left) };
        }
        left -= head.text.length;
      }
      return taken;
    },
  };
}

/** Sampled tokens of one turn to runs. Tokens are numbered in the order of `push` and `skip`. */
export interface TurnText {
  push(id: number): TokenRun[];
  /** A token that stands for no text, such as the end token. */
  skip(): void;
  flush(): TokenRun[];
}

export function createTurnText(tokenizer: Tokenizer): TurnText {
  const decoder = createSampledText(tokenizer);
  let index = -1;
  /** First token whose bytes are not all out yet. */
  let open = 0;
  let tail: number[] = [];

  const runs = (text: string): TokenRun[] => {
    if (text === '') return [];
    // The first character may have begun in earlier tokens; the rest belongs to this token alone.
    const character = String.fromCodePoint(text.codePointAt(0) as number);
    const rest = text.slice(character.length);
    const begun: TokenRun = { text: character, first: Math.min(open, index), last: index };
    return rest === '' ? [begun] : [begun, { text: rest, first: index, last: index }];
  };

  return {
    push(id) {
      index += 1;
      const text = decoder.push(id);
      const result = runs(text);
      tail = [...tail, ...tokenizer.tokenBytes(id)].slice(-3);
      const inside = endsInsideCharacter(tail);
      if (text !== '') open = inside ? index : index + 1;
      else if (!inside) open = index + 1;
      return result;
    },
    skip() {
      index += 1;
    },
    flush: () => runs(decoder.flush()),
  };
}

/** Do these bytes end in a UTF-8 character that needs more of them? */
function endsInsideCharacter(bytes: readonly number[]): boolean {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] as number;
    if (byte < 0x80) return false;
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2);
  }
  return false;
}
