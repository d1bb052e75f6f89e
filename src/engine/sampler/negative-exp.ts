// exp(-d) for d >= 0, several times faster than Math.exp: a table in steps of 2^(-1/32), then a short series.

const STEPS = 32;
/** Beyond this distance (nats) the result is 0: e^-64 is 1.6e-28. */
export const FARTHEST = 64;
const SCALE = Math.LOG2E * STEPS;
const STEP_NATS = Math.LN2 / STEPS;

const TABLE = Float64Array.from({ length: Math.ceil(FARTHEST * SCALE) + 1 }, (_, i) => 2 ** (-i / STEPS));

/**
 * exp(-distance), relative error below 1e-10; 0 beyond {@link FARTHEST}; NaN for NaN. A distance that rounding made
 * slightly negative (above -0.02) is fine.
 */
export function negativeExp(distance: number): number {
  if (distance > FARTHEST) return 0;
  const y = distance * SCALE;
  const whole = y | 0;
  const r = (y - whole) * STEP_NATS;
  return (TABLE[whole] as number) * (1 - r * (1 - r * (0.5 - r * (1 / 6 - r * (1 / 24)))));
}

/** Sum of exp((row[i] - top) * inverse) for i from `start` to `end`. The loop is written out: it is twice as fast so. */
export function sumOfExp(
  row: Float32Array,
  start: number,
  end: number,
  top: number,
  inverse: number,
): number {
  const table = TABLE;
  const scale = SCALE;
  const stepNats = STEP_NATS;
  let sum = 0;
  for (let i = start; i < end; i++) {
    const distance = (top - (row[i] as number)) * inverse;
    if (distance > FARTHEST) continue;
    const y = distance * scale;
    const whole = y | 0;
    const r = (y - whole) * stepNats;
    sum += (table[whole] as number) * (1 - r * (1 - r * (0.5 - r * (1 / 6 - r * (1 / 24)))));
  }
  return sum;
}

/**
 * The first i from `start` on at which the running sum of exp((row[i] - top) * inverse) passes `target`; `end` when it
 * never does.
 */
export function placeOfSum(
  row: Float32Array,
  start: number,
  end: number,
  top: number,
  inverse: number,
  target: number,
): number {
  const table = TABLE;
  const scale = SCALE;
  const stepNats = STEP_NATS;
  let sum = 0;
  for (let i = start; i < end; i++) {
    const distance = (top - (row[i] as number)) * inverse;
    if (distance > FARTHEST) continue;
    const y = distance * scale;
    const whole = y | 0;
    const r = (y - whole) * stepNats;
    sum += (table[whole] as number) * (1 - r * (1 - r * (0.5 - r * (1 / 6 - r * (1 / 24)))));
    if (sum > target) return i;
  }
  return end;
}

/** Adds exp((row[i] - top) * inverse) to the bucket of its distance, `perNat` buckets a nat. @returns the sum of all */
export function bucketsOfExp(
  row: Float32Array,
  start: number,
  end: number,
  top: number,
  inverse: number,
  perNat: number,
  buckets: Float64Array,
): number {
  const table = TABLE;
  const scale = SCALE;
  const stepNats = STEP_NATS;
  let sum = 0;
  for (let i = start; i < end; i++) {
    const distance = (top - (row[i] as number)) * inverse;
    if (distance > FARTHEST) continue;
    const y = distance * scale;
    const whole = y | 0;
    const r = (y - whole) * stepNats;
    const weight = (table[whole] as number) * (1 - r * (1 - r * (0.5 - r * (1 / 6 - r * (1 / 24)))));
    const bucket = (distance * perNat) | 0;
    buckets[bucket] = (buckets[bucket] as number) + weight;
    sum += weight;
  }
  return sum;
}
