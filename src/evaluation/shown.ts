// What a policy saw of the passages that were found, and whether a gold answer stands there.

import { normaliseAnswer } from '../trajectory/index.js';

/** UTF-16 units below which a beginning may stand in an observation by chance. */
const FEWEST_SHOWN = 12;

/**
 * The longest beginning of a text that an observation holds: passages are cut at their end only. '' where the
 * passage was left out.
 */
export function shownPart(text: string, observation: string): string {
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (observation.includes(text.slice(0, middle))) low = middle;
    else high = middle - 1;
  }
  return low === text.length || low >= FEWEST_SHOWN ? text.slice(0, low) : '';
}

/** Whether one of the gold answers stands in a text, on whole words, in normal form. */
export function holdsAnswer(text: string, golds: readonly string[]): boolean {
  const words = ` ${normaliseAnswer(text)} `;
  return golds.map(normaliseAnswer).some((gold) => gold !== '' && words.includes(` ${gold} `));
}

/** Gold answers that no passage can hold. */
export const isYesNo = (golds: readonly string[]): boolean =>
  golds.length > 0 && golds.every((gold) => /^(?:yes|no)$/i.test(gold.trim()));
