// How token losses become one number. Denominators are those of the whole optimizer batch.
//
// Search-R1 eq. 2 and 3 and GRPO take the mean over sequences of the mean over tokens (`seq-mean-token-mean`);
// DAPO (2503.14476, eq. 8) the mean over all tokens (`token-mean`); Dr. GRPO (2503.20783) the sum over a constant
// (`seq-mean-token-sum-norm`). Search-R1's release takes a token mean for each micro-batch, which depends on the split;
// ours never does. Sequences without sampled tokens count in no denominator.

import { InvalidInputError } from '../../errors.js';

export type Aggregation = 'seq-mean-token-mean' | 'token-mean' | 'seq-mean-token-sum-norm';

/**
 * Weight of each token's loss, for each sequence: the loss is the sum over tokens of weight times token loss.
 *
 * @param tokenCounts  sampled tokens of each sequence of the whole optimizer batch
 * @param norm         constant of `seq-mean-token-sum-norm`, tokens
 * @returns            0 for sequences without tokens
 * @throws {InvalidInputError} a norm is needed and not positive
 */
export function tokenWeights(
  tokenCounts: readonly number[],
  aggregation: Aggregation,
  norm: number,
): Float64Array {
  const live = tokenCounts.filter((count) => count > 0).length;
  const total = tokenCounts.reduce((sum, count) => sum + count, 0);
  if (aggregation === 'seq-mean-token-sum-norm' && !(norm > 0)) {
    throw new InvalidInputError(
      `tokenSumNorm must be positive for ${aggregation}, got ${norm}`,
      'tokenSumNorm',
    );
  }
  return Float64Array.from(tokenCounts, (count) => {
    if (count === 0) return 0;
    if (aggregation === 'token-mean') return 1 / total;
    return 1 / (live * (aggregation === 'seq-mean-token-mean' ? count : norm));
  });
}
