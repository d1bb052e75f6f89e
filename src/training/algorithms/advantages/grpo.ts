// GRPO (2402.03300, section 4.1.2): rewards normalised within the group of one question.
//
// Search-R1 eq. 3 takes this over. Ours: unbiased deviation, 1e-6 beside it, and a deviation below 1e-3 counts as 0, where
// verl divides by it (rounding residues become advantages of thousands) and TRL adds 1e-4. A group of one has its reward
// less a baseline; verl gives R / (1 + 1e-6), TRL 0.

import { mean } from '../../../util/mean.js';
import { isEqualGroup, standardDeviation } from './groups.js';

/** A_i = (R_i - mean) / (std + 1e-6) for a group of at least two. */
export function grpoAdvantages(rewards: readonly number[]): number[] {
  if (isEqualGroup(rewards)) return rewards.map(() => 0);
  const centre = mean(rewards);
  const scale = standardDeviation(rewards) + 1e-6;
  return rewards.map((reward) => (reward - centre) / scale);
}
