// Finding added tokens in a text, by the rules of Hugging Face's Rust library: leftmost first, the longest of
// those that start there, optionally as a whole word only or together with the spaces beside it.

import { escapeRegExp } from '../util/escape-reg-exp.js';
import type { AddedTokenConfig } from './tokenizer-json.js';

/** A stretch of text, or one added token. */
export type Section = { readonly text: string; readonly start: number } | { readonly id: number };

export type SplitAtTokens = (text: string) => Section[];

const WORD = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]/u;

const wordCharacterBefore = (text: string, at: number): boolean => {
  const character = /.$/su.exec(text.slice(Math.max(0, at - 2), at));
  return character !== null && WORD.test(character[0]);
};

const wordCharacterAt = (text: string, at: number): boolean =>
  at < text.length && WORD.test(String.fromCodePoint(text.codePointAt(at) as number));

function spacesBefore(text: string, at: number, from: number): number {
  let start = at;
  while (start > from && /\p{White_Space}/u.test(text[start - 1] as string)) start--;
  return start;
}

function spacesAfter(text: string, at: number): number {
  let end = at;
  while (end < text.length && /\p{White_Space}/u.test(text[end] as string)) end++;
  return end;
}

/**
 * @param tokens what to look for
 * @param spelling how a token is written in the texts that are searched; by default its content
 */
export function createTokenSplitter(
  tokens: readonly AddedTokenConfig[],
  spelling: (token: AddedTokenConfig) => string = (token) => token.content,
): SplitAtTokens {
  const byText = new Map(tokens.map((token) => [spelling(token), token]));
  byText.delete('');
  if (byText.size === 0) return (text) => (text === '' ? [] : [{ text, start: 0 }]);
  const longestFirst = [...byText.keys()].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(longestFirst.map(escapeRegExp).join('|'), 'g');
  return (text) => {
    const sections: Section[] = [];
    let end = 0;
    for (const match of text.matchAll(pattern)) {
      const token = byText.get(match[0]) as AddedTokenConfig;
      let [start, stop] = [match.index, match.index + match[0].length];
      if (start < end) continue;
      if (token.single_word && (wordCharacterBefore(text, start) || wordCharacterAt(text, stop))) continue;
      if (token.lstrip) start = spacesBefore(text, start, end);
      if (token.rstrip) stop = spacesAfter(text, stop);
      if (start > end) sections.push({ text: text.slice(end, start), start: end });
      sections.push({ id: token.id });
      end = stop;
    }
    if (end < text.length) sections.push({ text: text.slice(end), start: end });
    return sections;
  };
}
