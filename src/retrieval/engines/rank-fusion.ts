import type { ScoredLabel } from '../passages/passage-store.js';

/** Cormack, Clarke and Buettcher, SIGIR 2009: the constant that keeps the first ranks from deciding alone. */
const RANK_CONSTANT = 60;

/**
 * Reciprocal rank fusion: score(d) = sum over lists of 1 / (60 + rank of d in the list), ranks from 1.
 * @returns the k best, best first; among equals the lower label first
 */
export function fuseRanks(lists: readonly (readonly ScoredLabel[])[], k: number): ScoredLabel[] {
  const scores = new Map<number, number>();
  for (const list of lists)
    list.forEach(({ label }, i) => {
      scores.set(label, (scores.get(label) ?? 0) + 1 / (RANK_CONSTANT + i + 1));
    });
  return [...scores]
    .map(([label, score]) => ({ label, score }))
    .sort((a, b) => b.score - a.score || a.label - b.label)
    .slice(0, k);
}
