// McNemar's test: do two policies differ in how many of the same questions they get right?

import { chiSquareTail, logBinomial } from './special-functions.js';

export interface McNemar {
  readonly onlyFirstRight: number;
  readonly onlySecondRight: number;
  /** Exact binomial test, two-sided. */
  readonly exactP: number;
  /** Exact test with half the weight of the observed outcome: less conservative. */
  readonly midP: number;
  /** (|b - c| - 1)^2 / (b + c), and its tail. */
  readonly chiSquare: number;
  readonly chiSquareP: number;
}

/** Test of the discordant pairs: under the null each goes either way with probability 1/2. */
export function mcnemar(onlyFirstRight: number, onlySecondRight: number): McNemar {
  const n = onlyFirstRight + onlySecondRight;
  const counts = { onlyFirstRight, onlySecondRight };
  if (n === 0) return { ...counts, exactP: 1, midP: 1, chiSquare: 0, chiSquareP: 1 };
  const fewer = Math.min(onlyFirstRight, onlySecondRight);
  const probability = (k: number): number => Math.exp(logBinomial(n, k) - n * Math.LN2);
  let tail = 0;
  for (let k = 0; k <= fewer; k++) tail += probability(k);
  const exactP = Math.min(1, 2 * tail);
  const chiSquare = (Math.abs(onlyFirstRight - onlySecondRight) - 1) ** 2 / n;
  return {
    ...counts,
    exactP,
    midP: exactP - probability(fewer),
    chiSquare,
    chiSquareP: chiSquareTail(chiSquare),
  };
}
