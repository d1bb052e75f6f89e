// Soft over-long penalty (DAPO, 2503.14476, eq. 13): 0 up to maxTokens - cacheTokens, then falling to -1 at maxTokens.
//
// Beyond the limit it stays at -1, as in the paper and TRL; verl's formula falls on. It counts sampled tokens: a policy
// is not to blame for the length of what was retrieved.

import { InvalidInputError } from '../../../errors.js';

/** @returns in [-1, 0], to be added to the reward */
export function overlongPenalty(
  sampledTokens: number,
  { maxTokens, cacheTokens }: { readonly maxTokens: number; readonly cacheTokens: number },
): number {
  if (!(cacheTokens > 0 && cacheTokens <= maxTokens)) {
    throw new InvalidInputError(
      `overlong: expected 0 < cacheTokens <= maxTokens, got ${cacheTokens} and ${maxTokens}`,
      'overlong',
    );
  }
  const excess = sampledTokens - (maxTokens - cacheTokens);
  return excess <= 0 ? 0 : -Math.min(excess / cacheTokens, 1);
}
