// How coverage grows with the number of samples: log c = a k^b (SSRL, section 3; arXiv 2508.10874).

import { InvalidInputError } from '../errors.js';
import { mean } from '../util/mean.js';

export interface PowerLaw {
  readonly a: number;
  readonly b: number;
  /** Standard errors of a and b. */
  readonly errors: readonly [number, number];
  /** Root of the mean squared residual of log c. */
  readonly rmse: number;
}

export interface LogLogLine extends Pick<PowerLaw, 'a' | 'b'> {
  readonly r2: number;
}

const STEPS = 200;
const SMALLEST_CHANGE = 1e-14;

/**
 * Least squares of log c against a k^b (Levenberg-Marquardt from the straight line in log-log).
 * @param k         numbers of samples, above 0
 * @param coverage  shares in (0, 1), one for each k
 */
export function fitPowerLaw(k: readonly number[], coverage: readonly number[]): PowerLaw {
  const line = fitLogLogLine(k, coverage);
  const y = coverage.map(Math.log);
  let [a, b] = [line.a, line.b];
  let damping = 1e-3;
  let loss = squares(k, y, a, b);
  for (let step = 0; step < STEPS && damping < 1e12; step++) {
    const { aa, ab, bb, ra, rb } = normalEquations(k, y, a, b);
    const [daa, dbb] = [aa * (1 + damping), bb * (1 + damping)];
    const determinant = daa * dbb - ab * ab;
    const da = (dbb * ra - ab * rb) / determinant;
    const db = (daa * rb - ab * ra) / determinant;
    const next = squares(k, y, a + da, b + db);
    if (!(next <= loss)) {
      damping *= 10;
      continue;
    }
    const settled =
      Math.abs(da) < SMALLEST_CHANGE * Math.abs(a) && Math.abs(db) < SMALLEST_CHANGE * Math.abs(b);
    [a, b, loss, damping] = [a + da, b + db, next, damping / 10];
    if (settled) break;
  }
  const { aa, ab, bb } = normalEquations(k, y, a, b);
  const variance = loss / Math.max(1, k.length - 2) / (aa * bb - ab * ab);
  return {
    a,
    b,
    errors: [Math.sqrt(variance * bb), Math.sqrt(variance * aa)],
    rmse: Math.sqrt(loss / k.length),
  };
}

/** The straight line log(-log c) = log(-a) + b log k, and how well it fits. */
export function fitLogLogLine(k: readonly number[], coverage: readonly number[]): LogLogLine {
  if (k.length !== coverage.length || k.length < 3)
    throw new InvalidInputError(`expected three or more points, got ${k.length} and ${coverage.length}`);
  if (!coverage.every((c) => c > 0 && c < 1) || !k.every((item) => item > 0))
    throw new InvalidInputError('expected k above 0 and coverage between 0 and 1, both excluded');
  const x = k.map(Math.log);
  const y = coverage.map((c) => Math.log(-Math.log(c)));
  const [mx, my] = [mean(x), mean(y)];
  const sum = (value: (i: number) => number): number => x.reduce((total, _, i) => total + value(i), 0);
  const dx = (i: number): number => (x[i] as number) - mx;
  const dy = (i: number): number => (y[i] as number) - my;
  const b = sum((i) => dx(i) * dy(i)) / sum((i) => dx(i) ** 2);
  const r2 = 1 - sum((i) => (dy(i) - b * dx(i)) ** 2) / sum((i) => dy(i) ** 2);
  return { a: -Math.exp(my - b * mx), b, r2 };
}

const squares = (k: readonly number[], y: readonly number[], a: number, b: number): number =>
  k.reduce((sum, item, i) => sum + ((y[i] as number) - a * item ** b) ** 2, 0);

/** Products of the derivatives by a and b with each other and with the residuals. */
function normalEquations(k: readonly number[], y: readonly number[], a: number, b: number) {
  const sums = { aa: 0, ab: 0, bb: 0, ra: 0, rb: 0 };
  for (const [i, item] of k.entries()) {
    const power = item ** b;
    const byB = a * power * Math.log(item);
    const residual = (y[i] as number) - a * power;
    sums.aa += power * power;
    sums.ab += power * byB;
    sums.bb += byB * byB;
    sums.ra += residual * power;
    sums.rb += residual * byB;
  }
  return sums;
}
