// Where, in what a search showed, a gold answer stands, and how that place is quoted.

import { shownPart } from '../../evaluation/index.js';
import type { Passage } from '../../retrieval/index.js';
import { contentStems, findPhrase, overlap, sentencesOf, wordsOf } from './words.js';

/** A passage as far as the policy saw it. */
export interface SeenPassage {
  /** From 1, as the observation numbers it. */
  readonly index: number;
  readonly title: string;
  readonly text: string;
}

export interface Support {
  readonly passage: SeenPassage;
  readonly quote: string;
  /** The answer as the passage writes it. */
  readonly answer: string;
  /** Words that quote and title share with the question. */
  readonly score: number;
}

const LONGEST_QUOTE_WORDS = 40;

/** The parts of passages that an observation shows; passages that were cut away are left out. */
export function seenPassages(passages: readonly Passage[], observation: string): SeenPassage[] {
  return passages.flatMap(({ title, text }, i) => {
    const seen = shownPart(text, observation);
    return seen === '' ? [] : [{ index: i + 1, title, text: seen }];
  });
}

/** Titles without what tells namesakes apart: `Oro bajo (film)` is `Oro bajo`. Entities of HTML are undone. */
export const coreTitle = (title: string): string =>
  title
    .replace(/&quot;/g, '"')
    .replace(/&amp;/g, '&')
    .replace(/&#39;/g, "'")
    .replace(/\s*\([^)]*\)\s*$/, '')
    .trim();

export const sameTitle = (a: string, b: string): boolean =>
  coreTitle(a).toLowerCase() === coreTitle(b).toLowerCase();

/** The passage of a page, of namesakes the one with the very title. */
export const passageOf = (seen: readonly SeenPassage[], title: string): SeenPassage | undefined =>
  seen.find((passage) => plainTitle(passage.title) === plainTitle(title)) ??
  seen.find((passage) => sameTitle(passage.title, title));

const plainTitle = (title: string): string =>
  title
    .replace(/&quot;/g, '"')
    .replace(/&amp;/g, '&')
    .toLowerCase();

/** An alias of few letters counts only as it is written, lest "us" be the country. */
const SHORT_ALIAS = 3;

/** The shortest gold answers come first; those without words never do. */
const byLength = (golds: readonly string[]): string[] =>
  [...new Set(golds)].filter((gold) => wordsOf(gold).length > 0).sort((a, b) => a.length - b.length);

/** Places of a gold answer in a text. */
export function findAnswer(text: string, gold: string): [number, number][] {
  const places = findPhrase(text, gold);
  if (gold.length > SHORT_ALIAS && !/^\p{Lu}/u.test(gold)) return places;
  return places.filter(([start, end]) => {
    const written = text.slice(start, end);
    return gold.length > SHORT_ALIAS ? /^[\p{Lu}\p{N}\p{P}]/u.test(written) : written === gold;
  });
}

/** All sentences that hold a gold answer, best first: most words of the question, then the earliest passage. */
export function findSupports(
  seen: readonly SeenPassage[],
  question: string,
  golds: readonly string[],
): Support[] {
  const asked = contentStems(question);
  const supports: Support[] = [];
  for (const passage of seen) {
    const titleStems = contentStems(passage.title);
    for (const [start, end] of sentencesOf(passage.text)) {
      const sentence = passage.text.slice(start, end);
      const place = firstAnswer(sentence, golds);
      if (place === null) continue;
      const answer = sentence.slice(...place);
      // The answer's own words say nothing about whether this is the place.
      const own = contentStems(answer);
      const told = new Set([...contentStems(sentence), ...titleStems].filter((item) => !own.has(item)));
      supports.push({ passage, quote: quoteAround(sentence, place), answer, score: overlap(asked, told) });
    }
  }
  return supports.sort((a, b) => b.score - a.score || a.passage.index - b.passage.index);
}

/** The shortest gold answer that is there; one that goes on from it without a comma ("Mexico City") is taken whole. */
function firstAnswer(sentence: string, golds: readonly string[]): [number, number] | null {
  let best: [number, number] | null = null;
  for (const gold of byLength(golds)) {
    const places = findAnswer(sentence, gold);
    if (best === null) best = places[0] ?? null;
    else {
      const [start, end]: readonly [number, number] = best;
      best =
        places.find(([from, to]) => from === start && to > end && !sentence.slice(end, to).includes(',')) ??
        best;
    }
  }
  return best;
}

/** The sentence, or of a long one the clauses around a place. */
export function quoteAround(sentence: string, [from, to]: readonly [number, number]): string {
  let [start, end] = [0, sentence.length];
  const count = (a: number, b: number): number => sentence.slice(a, b).split(/\s+/).length;
  const borders = [...sentence.matchAll(/[,;:]\s+|\s[–—-]\s|\s(?=\()/g)].map((match) => match.index);
  if (count(start, end) > LONGEST_QUOTE_WORDS) {
    end = borders.find((border) => border >= to) ?? end;
    if (count(start, end) > LONGEST_QUOTE_WORDS)
      start = borders.find((border) => border < from && count(border, end) <= LONGEST_QUOTE_WORDS) ?? start;
  }
  const quote = sentence.slice(start, end).replace(/^[,;:\s–—-]+/, '');
  if (quote.split(/\s+/).length <= LONGEST_QUOTE_WORDS * 1.5) return oneLine(quote);
  return oneLine(sentence.slice(Math.max(0, sentence.lastIndexOf(' ', Math.max(0, from - 120))), to));
}

/** The sentence up to a place, without clauses far before it. */
export function quoteUpTo(sentence: string, [from, to]: readonly [number, number]): string {
  return quoteAround(sentence.slice(0, to), [from, to]);
}

/** White space collapsed, and nothing that reads as a tag. */
export const oneLine = (text: string): string => text.replace(/\s+/g, ' ').replace(/[<>]/g, '').trim();
