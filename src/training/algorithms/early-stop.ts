// When further epochs on one batch do harm: the policy has moved away from the one that sampled it.
//
// PPO's reference implementations stop when the approximate KL passes 1.5 times its target. Theirs is the mean of
// logpOld - logp, which may be negative where the policy has moved far; ours is the mean of k3, which cannot.

import { InvalidInputError } from '../../errors.js';

const TOLERATED = 1.5;

/**
 * @param approxKl  metric `approxKl` of the update just made, or of a pass over the whole batch
 * @param targetKl  null: never stops
 */
export function stopsEarly(approxKl: number, targetKl: number | null): boolean {
  if (targetKl === null) return false;
  if (!(targetKl > 0))
    throw new InvalidInputError(`targetKl: expected a positive number, got ${targetKl}`, 'targetKl');
  return approxKl > TOLERATED * targetKl;
}
