// Reading per-token arrays through a mask. What the mask hides is never read, so it cannot matter.

import { InvalidInputError } from '../../errors.js';

/**
 * Indices where the mask is 1, ascending.
 * @throws {InvalidInputError} an entry is neither 0 nor 1
 */
export function maskedPositions(mask: ArrayLike<number>, name: string): number[] {
  const positions: number[] = [];
  for (let t = 0; t < mask.length; t++) {
    if (mask[t] === 1) positions.push(t);
    else if (mask[t] !== 0)
      throw new InvalidInputError(`${name}[${t}]: expected 0 or 1, got ${mask[t]}`, name);
  }
  return positions;
}

/**
 * The entries at these positions, in float64.
 * @param length  what the array's length must be
 * @throws {InvalidInputError} another length; an entry that is read is not finite
 */
export function pick(
  values: ArrayLike<number>,
  positions: readonly number[],
  length: number,
  name: string,
): Float64Array {
  if (values.length !== length) {
    throw new InvalidInputError(
      `${name}: expected ${length} entries as in the mask, got ${values.length}`,
      name,
    );
  }
  return Float64Array.from(positions, (t) => {
    const value = values[t] as number;
    if (!Number.isFinite(value)) throw new InvalidInputError(`${name}[${t}]: not finite (${value})`, name);
    return value;
  });
}

/** The inverse of `pick`: zeros elsewhere. */
export function spread(
  compact: ArrayLike<number>,
  positions: readonly number[],
  length: number,
): Float64Array {
  const full = new Float64Array(length);
  positions.forEach((t, i) => {
    full[t] = compact[i] as number;
  });
  return full;
}
