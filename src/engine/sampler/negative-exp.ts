// exp(-d) for d >= 0, several times faster than Math.exp: a table in steps of 2^(-1/32), then a short series.

const STEPS = 32;
/** Beyond this distance (nats) the result is 0: e^-64 is 1.6e-28. */
export const FARTHEST = 64;
const SCALE = Math.LOG2E * STEPS;
const STEP_NATS = Math.LN2 / STEPS;

const table = Float64Array.from({ length: Math.ceil(FARTHEST * SCALE) + 1 }, (_, i) => 2 ** (-i / STEPS));

/**
 * exp(-distance), relative error below 1e-10; 0 beyond {@link FARTHEST}; NaN for NaN. A distance that rounding made
 * slightly negative (above -0.02) is fine.
 */
export function negativeExp(distance: number): number {
  if (distance > FARTHEST) return 0;
  const y = distance * SCALE;
  const whole = y | 0;
  const r = (y - whole) * STEP_NATS;
  return (table[whole] as number) * (1 - r * (1 - r * (0.5 - r * (1 / 6 - r * (1 / 24)))));
}
