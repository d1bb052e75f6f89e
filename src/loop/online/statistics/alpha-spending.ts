// How much error the n-th candidate that is tried on the same questions may spend.

/**
 * alpha / (n (n + 1)): the parts of all candidates sum to alpha, however many come. The first ones get most, because
 * with every look the questions have told more of themselves.
 *
 * @param attempt  from 1, since the questions were fresh
 */
export function alphaOfAttempt(alpha: number, attempt: number): number {
  return alpha / (attempt * (attempt + 1));
}
