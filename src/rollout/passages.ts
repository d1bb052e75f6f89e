// Passages as the policy reads them, each cut to a number of tokens, then all of them: whole passages go first,
// then the end of the last one that is left, always between characters.

import type { Passage } from '../retrieval/index.js';
import type { Tokenizer } from '../tokenizer/index.js';
import { fillTemplate, type PassageForm } from './prompt-file.js';

export interface PlacedPassages {
  /** Prefix, passages, suffix. */
  readonly text: string;
  readonly ids: readonly number[];
  /** The passages that are there, the last one perhaps in part. */
  readonly passages: readonly Passage[];
}

export interface PlaceOptions {
  readonly tokenizer: Tokenizer;
  readonly form: PassageForm;
  readonly prefix: string;
  readonly suffix: string;
  /** Most tokens of the whole, prefix and suffix included. */
  readonly limit: number;
  /** Most tokens of one passage as it is written; null or absent: no such limit. */
  readonly passageLimit?: number | null;
}

/** UTF-16 units of one token, more often than not. */
const LIKELY_TOKEN_LENGTH = 4;

/**
 * Writes passages by a form, within `limit` tokens. Prefix and suffix always stand whole.
 * @returns null when not even prefix and suffix fit
 */
export function placePassages(found: readonly Passage[], options: PlaceOptions): PlacedPassages | null {
  const { tokenizer, form, prefix, suffix, limit, passageLimit } = options;
  const passages =
    passageLimit == null
      ? found
      : found.map((passage, i) => cutPassage(passage, i + 1, { tokenizer, form, limit: passageLimit }));
  const place = (list: readonly Passage[]): PlacedPassages | null => {
    const body = list.map((passage, i) => writePassage(passage, i + 1, form)).join('');
    // Nothing found is said; passages that were all cut away are not.
    const text = `${prefix}${passages.length === 0 ? form.none : body}${suffix}`;
    if (tokenizer.minimumTokens(Buffer.byteLength(text)) > limit) return null;
    const ids = tokenizer.encodePlain(text);
    return ids.length > limit ? null : { text, ids, passages: list };
  };
  const first = passages[0];
  if (first === undefined) return place([]);
  // All at once where that may well do; long lists are felt out from the front.
  const length = passages.reduce((sum, { title, text }) => sum + title.length + text.length, 0);
  const guess = length <= limit * LIKELY_TOKEN_LENGTH ? passages.length : 1;
  return (
    largestTaken(passages.length, guess, (count) => place(passages.slice(0, count))) ??
    longestThatFits(first, limit, (part) => place([part])) ??
    place([])
  );
}

function writePassage(passage: Passage, index: number, form: PassageForm): string {
  const text = form.passageWords === null ? passage.text : firstWords(passage.text, form.passageWords);
  return fillTemplate(form.passage, { index: String(index), title: passage.title, text });
}

/** Characters of one token at most that matter here: longer texts are cut to this many a token before they are encoded. */
const MOST_CHARACTERS_PER_TOKEN = 32;

/** The passage with its text cut, between words where it has any, so that it is written in `limit` tokens. */
function cutPassage(
  passage: Passage,
  index: number,
  options: { readonly tokenizer: Tokenizer; readonly form: PassageForm; readonly limit: number },
): Passage {
  const { tokenizer, form, limit } = options;
  const text = passage.text.slice(0, limit * MOST_CHARACTERS_PER_TOKEN);
  const written = tokenizer.encodePlain(writePassage({ ...passage, text }, index, form)).length;
  if (written <= limit) return { ...passage, text };
  const ids = tokenizer.encodePlain(text);
  const kept = Math.max(0, ids.length - (written - limit));
  // A character that was cut in two decodes to U+FFFD.
  const part = tokenizer.decode(ids.slice(0, kept)).replace(/\ufffd+$/, '');
  const words = part.replace(/\s*\S+$/, '');
  return { ...passage, text: words === '' || text.startsWith(`${part} `) ? part : words };
}

/** The first words with the white space between them, without what follows. */
const firstWords = (text: string, count: number): string =>
  new RegExp(`^(?:\\s*\\S+){0,${count}}`).exec(text)?.[0] ?? '';

/** The longest beginning of title and text, never half a character, that `place` takes. */
function longestThatFits(
  { title, text, ...rest }: Passage,
  limit: number,
  place: (part: Passage) => PlacedPassages | null,
): PlacedPassages | null {
  const part = (kept: number): Passage => ({
    ...rest,
    title: beginning(title, kept),
    text: beginning(text, Math.max(0, kept - title.length)),
  });
  const most = title.length + text.length - 1;
  return largestTaken(most, limit * LIKELY_TOKEN_LENGTH, (kept) => place(part(kept)));
}

/** At most `length` UTF-16 units, without the first half of a character at the end. */
function beginning(text: string, length: number): string {
  const cut = text.slice(0, length);
  return cut.length < text.length && /[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut;
}

/**
 * What `take` gives for the largest count from 1 to `most` that it does not refuse, given that it takes all
 * smaller ones; null when it refuses 1. Tries `guess`, doubles while it is taken, then halves what is between:
 * nothing far larger than what fits is ever made.
 */
function largestTaken<T>(most: number, guess: number, take: (count: number) => T | null): T | null {
  let best: T | null = null;
  let low = 0;
  let high = most + 1;
  let count = Math.min(guess, most);
  while (high - low > 1) {
    const taken = take(count);
    if (taken === null) high = count;
    else {
      best = taken;
      low = count;
    }
    count = high > most ? Math.min(2 * low, most) : (low + high) >> 1;
  }
  return best;
}
