// Rewards of rollouts of one question, compared with each other.

import { mean, sum } from '../../../util/mean.js';

/** A spread of rewards below this is rounding, not signal: dividing by it makes advantages of thousands. */
const STD_FLOOR = 1e-3;

/** Indices of the members of each group, groups in the order of their first member. */
export function membersByGroup(groups: readonly string[]): Map<string, number[]> {
  const members = new Map<string, number[]>();
  groups.forEach((group, i) => {
    const list = members.get(group);
    if (list === undefined) members.set(group, [i]);
    else list.push(i);
  });
  return members;
}

/** Square root of the unbiased variance; 0 for fewer than two. */
export function standardDeviation(values: readonly number[]): number {
  if (values.length < 2) return 0;
  const centre = mean(values);
  return Math.sqrt(sum(values.map((value) => (value - centre) ** 2)) / (values.length - 1));
}

/** More than one member and all rewards equal, so that no comparison is possible. */
export const isEqualGroup = (rewards: readonly number[]): boolean =>
  rewards.length > 1 && standardDeviation(rewards) < STD_FLOOR;

/**
 * Advantage of each rollout from its group alone.
 * @param baselines   of each rollout, taken off in a group of one
 * @param ofGroup     advantages of a group of at least two
 */
export function advantagesByGroup(
  rewards: readonly number[],
  groups: readonly string[],
  baselines: readonly number[],
  ofGroup: (rewards: readonly number[]) => readonly number[],
): Float64Array {
  const advantages = new Float64Array(rewards.length);
  for (const members of membersByGroup(groups).values()) {
    const only = members[0] as number;
    if (members.length === 1) {
      advantages[only] = rewards[only]! - baselines[only]!;
      continue;
    }
    ofGroup(members.map((i) => rewards[i]!)).forEach((advantage, m) => {
      advantages[members[m]!] = advantage;
    });
  }
  return advantages;
}
