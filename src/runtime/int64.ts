// Token ids are numbers here and int64 in graphs.

import { RuntimeError } from '../errors.js';

/**
 * Writes integers into an int64 array.
 * @param values  numbers or bigints; numbers must be safe integers
 * @throws {RuntimeError} for a fraction, NaN, or when the target is too short
 */
export function writeInt64(target: BigInt64Array, values: ArrayLike<number | bigint>, offset = 0): void {
  if (offset < 0 || offset + values.length > target.length)
    throw new RuntimeError(`${values.length} values at ${offset} do not fit into ${target.length} elements`);
  for (let at = 0; at < values.length; at++) {
    const value = values[at] as number | bigint;
    if (typeof value === 'number' && !Number.isSafeInteger(value))
      throw new RuntimeError(`value ${value} at ${at} is not an integer that int64 and number share`);
    target[offset + at] = BigInt(value);
  }
}

/** A new int64 array. @throws {RuntimeError} see `writeInt64` */
export function int64(values: ArrayLike<number | bigint>): BigInt64Array {
  const target = new BigInt64Array(values.length);
  writeInt64(target, values);
  return target;
}

/** Numbers of an int64 array. @throws {RuntimeError} for one beyond 2^53 */
export function numbers(values: BigInt64Array): number[] {
  return Array.from(values, (value, at) => {
    const number = Number(value);
    if (!Number.isSafeInteger(number))
      throw new RuntimeError(`int64 ${value} at ${at} is too large for a number`);
    return number;
  });
}
