// Words of texts with their places, so that what is found in normal form can be quoted as it is written.

import { normaliseAnswer } from '../../trajectory/index.js';

export interface Word {
  /** Normalised; never empty. Articles and punctuation alone are no words. */
  readonly normal: string;
  /** Range [start, end) of UTF-16 units in the text. */
  readonly start: number;
  readonly end: number;
}

/** Words of a text in the normal form of answers. */
export function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  for (const match of text.matchAll(/[^\s\u0085]+/g)) {
    const normal = normaliseAnswer(match[0]);
    if (normal === '' || normal.includes(' ')) continue;
    words.push({ normal, start: match.index, end: match.index + match[0].length });
  }
  return words;
}

/** Ranges of a text whose words are, in normal form, those of `phrase`; without punctuation at both ends. */
export function findPhrase(text: string, phrase: string, words = wordsOf(text)): [number, number][] {
  const sought = wordsOf(phrase).map(({ normal }) => normal);
  if (sought.length === 0) return [];
  const found: [number, number][] = [];
  for (let at = 0; at + sought.length <= words.length; at++) {
    if (!sought.every((word, i) => words[at + i]?.normal === word)) continue;
    const first = words[at] as Word;
    const last = words[at + sought.length - 1] as Word;
    found.push(trimPunctuation(text, first.start, last.end));
  }
  return found;
}

function trimPunctuation(text: string, start: number, end: number): [number, number] {
  let [from, to] = [start, end];
  while (from < to && /[!-/:-@[-`{-~“”‘’«»]/.test(text[from] as string)) from++;
  while (to > from && /[!-/:-@[-`{-~“”‘’«»]/.test(text[to - 1] as string)) to--;
  // A closing bracket or the point of an initial that belongs to the phrase.
  const opened = text.slice(from, to).split('(').length - text.slice(from, to).split(')').length;
  if (opened > 0 && text[to] === ')') to += 1;
  return [from, to];
}

const FUNCTION_WORDS = new Set(
  `a about after all also an and any are as at be became been before being between both but by came can could
did do does doing during each else for from had has have he her here him his how i if in into is it its just me more
most much my new not of off on one only or other our out over own s same she so some such than that the their them then
there these they this those through to too two under until up us very was we were what when where which while who whom
whose why will with would you your name named called known many located containing contains uses used using`.split(
    /\s+/,
  ),
);

const LONGEST_STEM = 6;

/** Beginning of a word, so that forms of one word meet: directed, director, directorial. */
export const stem = (normal: string): string => {
  const cut = normal.replace(/(?:ations?|ings?|ions?|ors?|ers?|ies|ed|es|s|e|y)$/, '');
  return (cut.length >= 3 ? cut : normal).slice(0, LONGEST_STEM);
};

/** Stems of the words that carry meaning. */
export const contentStems = (text: string): Set<string> =>
  new Set(
    wordsOf(text)
      .map(({ normal }) => normal)
      .filter((word) => !FUNCTION_WORDS.has(word))
      .map(stem),
  );

export const isFunctionWord = (normal: string): boolean => FUNCTION_WORDS.has(normal);

export function overlap(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let count = 0;
  for (const item of a) if (b.has(item)) count += 1;
  return count;
}

const ABBREVIATION =
  /(?:^|[\s(."“])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Ste|Jr|Sr|No|Nos|vs|c|ca|b|d|r|fl|approx|Rev|Gen|Col|Capt|Lt|Sgt|Gov|Sen|Rep|Hon|Inc|Ltd|Co|Corp|Bros|etc|cf|Vol|U\.S|U\.K|e\.g|i\.e|Ph\.D)\.$/;

/** Sentences of a text, as ranges [start, end) without white space around; each begins in capitals or a digit. */
export function sentencesOf(text: string): [number, number][] {
  const sentences: [number, number][] = [];
  let start = 0;
  for (const match of text.matchAll(/[.!?]["”’')\]]*(?=\s+["“‘'([]*[\p{Lu}\p{N}])/gu)) {
    const end = match.index + match[0].length;
    if (match[0] === '.' && ABBREVIATION.test(text.slice(Math.max(0, end - 12), end))) continue;
    sentences.push([start, end]);
    start = end + (/^\s+/.exec(text.slice(end))?.[0].length ?? 0);
  }
  const end = text.trimEnd().length;
  if (start < end) sentences.push([start, end]);
  return sentences;
}

const NAME =
  /[“"]?\p{Lu}[\p{L}\p{N}'’-]*(?:\.?\s+(?:(?:of|the|and|de|la|le|von|van|der|du)\s+){0,2}[\p{Lu}\p{N}][\p{L}\p{N}'’-]*)*[”"]?/gu;

/** Names in a text: runs of capitalised words, small words inside. The longest first. */
export function namesOf(text: string): string[] {
  const names = [...text.matchAll(NAME)].map((match) => match[0].replace(/^[“"]|[”"]$/g, ''));
  return [...new Set(names)].sort((a, b) => b.length - a.length);
}
