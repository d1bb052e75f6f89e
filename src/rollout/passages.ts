// Passages as the policy reads them, cut to a number of tokens: whole passages go first, then the end of the
// last one that is left, always between characters.

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
}

/**
 * Writes passages by a form, within `limit` tokens. Prefix and suffix always stand whole.
 * @returns null when not even prefix and suffix fit
 */
export function placePassages(passages: readonly Passage[], options: PlaceOptions): PlacedPassages | null {
  const { tokenizer, form, prefix, suffix, limit } = options;
  const place = (list: readonly Passage[]): PlacedPassages | null => {
    const body = list.map((passage, i) => writePassage(passage, i + 1, form)).join('');
    // Nothing found is said; passages that were all cut away are not.
    const text = `${prefix}${passages.length === 0 ? form.none : body}${suffix}`;
    if (tokenizer.minimumTokens(Buffer.byteLength(text)) > limit) return null;
    const ids = tokenizer.encodePlain(text);
    return ids.length > limit ? null : { text, ids, passages: list };
  };
  for (let count = passages.length; count > 1; count--) {
    const placed = place(passages.slice(0, count));
    if (placed !== null) return placed;
  }
  const first = passages[0];
  if (first === undefined) return place([]);
  return place([first]) ?? longestThatFits(first, (part) => place([part])) ?? place([]);
}

function writePassage(passage: Passage, index: number, form: PassageForm): string {
  const text = form.passageWords === null ? passage.text : firstWords(passage.text, form.passageWords);
  return fillTemplate(form.passage, { index: String(index), title: passage.title, text });
}

/** The first words with the white space between them, without what follows. */
const firstWords = (text: string, count: number): string =>
  new RegExp(`^(?:\\s*\\S+){0,${count}}`).exec(text)?.[0] ?? '';

/** The longest beginning of title and text, in characters, that `place` takes. */
function longestThatFits(
  passage: Passage,
  place: (part: Passage) => PlacedPassages | null,
): PlacedPassages | null {
  const title = [...passage.title];
  const text = [...passage.text];
  const part = (kept: number): Passage => ({
    ...passage,
    title: title.slice(0, kept).join(''),
    text: text.slice(0, Math.max(0, kept - title.length)).join(''),
  });
  let best: PlacedPassages | null = null;
  let low = 1;
  let high = title.length + text.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const placed = place(part(middle));
    if (placed === null) high = middle - 1;
    else {
      best = placed;
      low = middle + 1;
    }
  }
  return best;
}
