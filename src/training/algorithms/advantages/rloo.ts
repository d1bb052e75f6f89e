// RLOO (2402.14740, eq. 8): the baseline is the mean reward of the group's other members, so it does not depend on the
// rollout that it judges. A group of one has none and is treated as in GRPO; verl keeps R, its vectorised twin gives 0.

import { sum } from '../../../util/mean.js';

/** A_i = R_i - mean of R_j, j != i, for a group of at least two. */
export function rlooAdvantages(rewards: readonly number[]): number[] {
  const total = sum(rewards);
  return rewards.map((reward) => reward - (total - reward) / (rewards.length - 1));
}
