/** Sum of f64 [n] from the first to the last; 0 without values. */
export function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i] as number;
  return total;
}

/** NaN without values. */
export const mean = (values: ArrayLike<number>): number => sum(values) / values.length;
