import { stopWords } from './stop-words.js';

const MAX_TERMS = 64;
const TERM = /[\p{L}\p{N}\p{Co}][\p{L}\p{N}\p{M}\p{Co}]*/gu;

/**
 * A disjunctive FTS5 query of the words of a text, or null when it has none. Each word is a quoted string of
 * letters and digits, so nothing in the text can act as query syntax. Function words are left out unless the
 * text has no others; repeated words count once; at most 64 words are taken.
 */
export function toFtsQuery(text: string): string | null {
  const words = [...new Set(text.toLowerCase().match(TERM) ?? [])];
  const telling = words.filter((word) => !stopWords.has(word));
  const chosen = (telling.length > 0 ? telling : words).slice(0, MAX_TERMS);
  return chosen.length === 0 ? null : chosen.map((word) => `"${word}"`).join(' OR ');
}
