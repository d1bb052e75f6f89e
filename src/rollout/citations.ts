// Which passages an answer rests on: those that contain it, else those of the last search that found any.

import type { Passage } from '../retrieval/index.js';
import { normaliseAnswer } from '../trajectory/index.js';
import type { Citation } from './events.js';

/**
 * @param answer    the text shown
 * @param searches  the passages that the policy saw, one list a search, in order
 * @returns one citation a passage, each over the whole answer (UTF-16 offsets); none for an empty answer
 */
export function citationsOf(answer: string, searches: readonly (readonly Passage[])[]): Citation[] {
  if (answer === '') return [];
  const seen = new Map(searches.flat().map((passage) => [passage.id, passage]));
  const wanted = normaliseAnswer(answer);
  const holding = wanted === '' ? [] : [...seen.values()].filter((passage) => contains(passage, wanted));
  const cited = holding.length > 0 ? holding : (searches.findLast((found) => found.length > 0) ?? []);
  return cited.map((passage) => ({ passage, start: 0, end: answer.length }));
}

/** Whole words only: "art" is not in "cartoon". */
const contains = (passage: Passage, wanted: string): boolean =>
  ` ${normaliseAnswer(`${passage.title} ${passage.text}`)} `.includes(` ${wanted} `);
