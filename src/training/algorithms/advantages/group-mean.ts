// Dr. GRPO (2503.20783, section 3.2): the reward less the group's mean.
//
// Not divided by the deviation, which would favour questions that are nearly always or nearly never solved. Used by
// `dr-grpo` and, as REINFORCE's baseline, by `reinforce`.

import { mean } from '../../../util/mean.js';

/** A_i = R_i - mean for a group of at least two. */
export function groupMeanAdvantages(rewards: readonly number[]): number[] {
  const centre = mean(rewards);
  return rewards.map((reward) => reward - centre);
}
