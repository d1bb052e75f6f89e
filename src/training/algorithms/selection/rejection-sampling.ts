// Rejection sampling (STaR, 2203.14465; RFT, 2308.01825): of several rollouts of a question the best one, if it is good
// enough, becomes supervised data.

import { membersByGroup } from '../advantages/groups.js';

export interface Candidate {
  readonly groupId: string;
  readonly reward: number;
  /** Of two equally good rollouts the one with fewer is kept: it has fewer detours to copy. */
  readonly sampledTokens: number;
}

/**
 * @param minReward  worse ones are never kept
 * @param perGroup   most rollouts kept for one question
 * @returns          indices, ascending
 */
export function bestOfN(
  candidates: readonly Candidate[],
  { minReward, perGroup = 1 }: { readonly minReward: number; readonly perGroup?: number },
): number[] {
  const groups = membersByGroup(candidates.map(({ groupId }) => groupId));
  const better = (a: number, b: number): number =>
    candidates[b]!.reward - candidates[a]!.reward ||
    candidates[a]!.sampledTokens - candidates[b]!.sampledTokens ||
    a - b;
  return [...groups.values()]
    .flatMap((members) =>
      members
        .filter((i) => candidates[i]!.sampledTokens > 0 && candidates[i]!.reward >= minReward)
        .sort(better)
        .slice(0, perGroup),
    )
    .sort((a, b) => a - b);
}
