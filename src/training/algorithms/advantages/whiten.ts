// Whitening over all sampled tokens of the batch: mean 0, variance 1.
//
// The papers leave the details open. As in verl the variance is unbiased and 1e-8 stands inside the root; where verl
// raises an error (fewer than two tokens) ours is 0. Search-R1's release whitens over observation tokens too.

import { mean, sum } from '../../../util/mean.js';
import { maskedPositions, pick, spread } from '../masked.js';

/**
 * @param values  for each sequence [T]
 * @param masks   for each sequence [T], 1 on sampled tokens
 * @returns       for each sequence [T], 0 where the mask is 0
 */
export function whiten(
  values: readonly ArrayLike<number>[],
  masks: readonly ArrayLike<number>[],
): Float64Array[] {
  const positions = masks.map((mask) => maskedPositions(mask, 'lossMask'));
  const compact = values.map((row, s) => pick(row, positions[s]!, masks[s]!.length, 'values'));
  const all = Float64Array.from(compact.flatMap((row) => [...row]));
  const centre = mean(all);
  const variance = sum(all.map((value) => (value - centre) ** 2)) / (all.length - 1);
  const scale = all.length < 2 ? 0 : 1 / Math.sqrt(variance + 1e-8);
  return compact.map((row, s) =>
    spread(
      row.map((value) => (value - centre) * scale),
      positions[s]!,
      masks[s]!.length,
    ),
  );
}
