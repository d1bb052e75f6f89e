// Is the candidate worse than what is live by less than a margin? Two policies on the same questions.

import { InvalidInputError } from '../../../errors.js';
import { chiSquareTail } from '../../../evaluation/index.js';

export interface NonInferiority {
  readonly questions: number;
  readonly onlyCandidateRight: number;
  readonly onlyLiveRight: number;
  /** Candidate minus live, share of questions. */
  readonly difference: number;
  /** Score statistic; large speaks for the candidate. */
  readonly z: number;
  /** One-sided: probability of this or more where the candidate is worse by exactly the margin. */
  readonly p: number;
}

/**
 * Score test for paired proportions (Tango 1998) of H0: pCandidate - pLive <= -margin. Unlike the Wald test it keeps
 * its level where few questions tell the two apart, which is what small updates look like.
 *
 * With b, c the questions that only candidate or only live has right and d = -margin:
 *   z = (b - c - n d) / sqrt(n (2 q + d (1 - d))),   q the restricted estimate of P(only live right).
 *
 * @param candidate  0 or 1 for each question
 * @param live       likewise, in the same order
 */
export function nonInferiority(
  candidate: readonly number[],
  live: readonly number[],
  margin: number,
): NonInferiority {
  const n = candidate.length;
  if (n === 0 || n !== live.length)
    throw new InvalidInputError(
      `expected the same questions, at least one, got ${n} and ${live.length} results`,
    );
  if (!(margin > 0 && margin < 1))
    throw new InvalidInputError(`margin: expected one in (0, 1), got ${margin}`, 'margin');
  let b = 0;
  let c = 0;
  for (let i = 0; i < n; i++) {
    if ((candidate[i] as number) > (live[i] as number)) b++;
    else if ((candidate[i] as number) < (live[i] as number)) c++;
  }
  const d = -margin;
  // Root of A q^2 + B q + C = 0: the likeliest q among those with pCandidate - pLive = d.
  const A = 2 * n;
  const B = -b - c + (2 * n - b + c) * d;
  const C = -c * d * (1 - d);
  const q = (Math.sqrt(B * B - 4 * A * C) - B) / (2 * A);
  const z = (b - c - n * d) / Math.sqrt(n * (2 * q + d * (1 - d)));
  return {
    questions: n,
    onlyCandidateRight: b,
    onlyLiveRight: c,
    difference: (b - c) / n,
    z,
    p: normalUpperTail(z),
  };
}

/** P(Z > z) of a standard normal Z. */
function normalUpperTail(z: number): number {
  const half = chiSquareTail(z * z) / 2;
  return z >= 0 ? half : 1 - half;
}
