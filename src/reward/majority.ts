// Majority vote over the answers of a group (TTRL): a label where no gold answer is known.

import { normaliseAnswer } from '../trajectory/index.js';

/**
 * The most frequent normalised answers, in order of first appearance; several on a tie. Missing answers and
 * answers without content do not vote.
 */
export function majorityWinners(answers: readonly (string | null)[]): string[] {
  const votes = new Map<string, number>();
  for (const answer of answers) {
    const normal = answer === null ? '' : normaliseAnswer(answer);
    if (normal !== '') votes.set(normal, (votes.get(normal) ?? 0) + 1);
  }
  const most = Math.max(...votes.values());
  return [...votes].filter(([, count]) => count === most).map(([answer]) => answer);
}

/** The label of a group: its one most frequent normalised answer, null on a tie or where nobody answered. */
export function majorityAnswer(answers: readonly (string | null)[]): string | null {
  const winners = majorityWinners(answers);
  return winners.length === 1 ? (winners[0] as string) : null;
}
