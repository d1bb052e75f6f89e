// What the tests and estimators need of special functions.

const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

/** Natural logarithm of the gamma function for x >= 1 (Lanczos, g = 7; to about 1e-14 relative). */
function logGamma(x: number): number {
  const z = x - 1;
  const t = z + 7.5;
  const series = LANCZOS.reduce((sum, c, i) => (i === 0 ? c : sum + c / (z + i)), 0);
  return 0.5 * Math.log(2 * Math.PI) + (z + 0.5) * Math.log(t) - t + Math.log(series);
}

/** Natural logarithm of n over k. */
export const logBinomial = (n: number, k: number): number =>
  k === 0 || k === n ? 0 : logGamma(n + 1) - logGamma(k + 1) - logGamma(n - k + 1);

/** Upper tail of the chi-square distribution with one degree of freedom: erfc(sqrt(x / 2)). */
export const chiSquareTail = (x: number): number => complementaryErrorFunction(Math.sqrt(x / 2));

/** erfc for x >= 0: the series below 2, the continued fraction from there on; to about 1e-13. */
function complementaryErrorFunction(x: number): number {
  if (x < 2) {
    let term = x;
    let sum = x;
    for (let n = 1; Math.abs(term) > 1e-17 * sum; n++) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    return 1 - (2 / Math.sqrt(Math.PI)) * sum;
  }
  let fraction = 0;
  for (let n = 120; n > 0; n--) fraction = n / 2 / (x + fraction);
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + fraction);
}
