// What a question asks for, by rule: one page, a chain of pages, or a comparison of two.

import type { Question } from '../../evaluation/index.js';
import { coreTitle } from './support.js';
import { findPhrase, isFunctionWord, namesOf, stem, wordsOf } from './words.js';

/**
 * `single`: one page answers; `chain`: a page leads to the next; `comparison`: two pages that the question names;
 * `parallel`: each of two named pages leads to another, and those are compared.
 */
export type QuestionKind = 'single' | 'chain' | 'comparison' | 'parallel';

export interface Mention {
  readonly title: string;
  /** The entity as the question writes it. */
  readonly text: string;
  readonly start: number;
}

const COMPARING = /\b(?:or|both|same|either|neither)\b/i;

/** Supporting titles that the question itself names, in its order. */
export function mentionsOf(question: Question): Mention[] {
  return question.supportingTitles
    .flatMap((title) => {
      const place = findPhrase(question.question, coreTitle(title))[0];
      return place === undefined ? [] : [mentionAt(question.question, title, place)];
    })
    .sort((a, b) => a.start - b.start);
}

/** With a bracket that follows: `Abracadabra (2017 Film)`. */
function mentionAt(question: string, title: string, [start, end]: readonly [number, number]): Mention {
  const bracket = /^\s*\([^)]*\)/.exec(question.slice(end))?.[0] ?? '';
  return { title, text: question.slice(start, end + bracket.length), start };
}

export function kindOf(question: Question): QuestionKind {
  const titles = question.supportingTitles.length;
  if (titles < 2) return 'single';
  const named = mentionsOf(question).length;
  if (named !== 2 || !COMPARING.test(question.question)) return 'chain';
  if (titles === 2) return 'comparison';
  return titles === 4 ? 'parallel' : 'chain';
}

const MOST_WORDS = 6;

/**
 * What of a question is still open once `known` is told: its words that carry meaning and are not in `known`,
 * with the small words between neighbours, such as "place of birth". '' when nothing is left.
 */
export function openWords(question: string, known: string): string {
  const told = new Set(wordsOf(known).map(({ normal }) => stem(normal)));
  const words = wordsOf(question);
  const open = words.map(({ normal }) => !isFunctionWord(normal) && !told.has(stem(normal)));
  const parts: string[] = [];
  let count = 0;
  for (let i = 0; i < words.length && count < MOST_WORDS; i++) {
    if (!open[i]) continue;
    let last = i;
    // Up to two small words may stand between.
    for (let next = i + 1; next < words.length && next - last <= 2; next++) if (open[next]) last = next;
    const text = question
      .slice(words[i]?.start, words[last]?.end)
      .replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '');
    parts.push(text);
    count += last - i + 1;
    i = last;
  }
  return parts.join(' ');
}

/** A query for another try: the names in the question, else its telling words. '' when that is the question itself. */
export function nameQuery(question: Question): string {
  const text = question.question.replace(/[?\s]+$/, '');
  const named = mentionsOf(question)[0]?.text;
  // The first word of a question is in capitals whatever it is.
  const names = namesOf(text.replace(/^\S+\s+/, ''));
  const name = named ?? names[0] ?? '';
  if (name === '' || name.length < 4) return '';
  const open = openWords(text, name);
  return `${name} ${open}`.trim();
}
