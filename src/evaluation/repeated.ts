// Measures over several answers to one question: pass@k and maj@k.

import { InvalidInputError } from '../errors.js';
import { normaliseAnswer } from '../trajectory/index.js';
import type { QuestionResult } from './result.js';
import { logBinomial } from './special-functions.js';

function checkK(k: number, n: number): void {
  if (!Number.isInteger(k) || k < 1 || k > n)
    throw new InvalidInputError(`k: expected a whole number from 1 to ${n}, got ${k}`, 'k');
}

/** Chance that at least one of k answers, drawn from n of which c are right, is right: 1 - C(n-c, k) / C(n, k). */
export function passAtK(n: number, c: number, k: number): number {
  checkK(k, n);
  if (n - c < k) return 1;
  let missed = 1;
  for (let i = 0; i < k; i++) missed *= (n - c - i) / (n - i);
  return 1 - missed;
}

/** Draws so far, votes of the leading answers, how many lead, and how many of those are right. */
interface VoteState {
  readonly drawn: number;
  readonly most: number;
  readonly leading: number;
  readonly right: number;
  readonly logWays: number;
}

/** An answer, and whether it is right. */
export type GradedAnswer = Pick<QuestionResult, 'answer' | 'em'>;

/**
 * Chance that the most frequent of k answers, drawn without replacement from a pool, is right; a tie counts by the
 * share of its answers that is right. Answers that are equal in normal form are one; those without content do not vote.
 */
export function expectedMajAtK(pool: readonly GradedAnswer[], k: number): number {
  checkK(k, pool.length);
  const votes = new Map<string, { count: number; right: boolean }>();
  for (const { answer, em } of pool) {
    const normal = answer === null ? '' : normaliseAnswer(answer);
    const count = (votes.get(normal)?.count ?? 0) + 1;
    votes.set(normal, { count, right: normal !== '' && em === 1 });
  }
  let states: VoteState[] = [{ drawn: 0, most: 0, leading: 0, right: 0, logWays: 0 }];
  for (const [answer, { count, right }] of votes) {
    states = merge(
      states.flatMap((state) =>
        Array.from({ length: Math.min(count, k - state.drawn) + 1 }, (_, given) =>
          vote(state, given, { right, counts: answer !== '', logWays: logBinomial(count, given) }),
        ),
      ),
    );
  }
  const all = logBinomial(pool.length, k);
  return states
    .filter(({ drawn, leading }) => drawn === k && leading > 0)
    .reduce((sum, { right, leading, logWays }) => sum + (right / leading) * Math.exp(logWays - all), 0);
}

function vote(
  state: VoteState,
  votes: number,
  answer: { readonly right: boolean; readonly counts: boolean; readonly logWays: number },
): VoteState {
  const drawn = state.drawn + votes;
  const logWays = state.logWays + answer.logWays;
  if (votes === 0 || !answer.counts || votes < state.most) return { ...state, drawn, logWays };
  const before = votes > state.most ? { leading: 0, right: 0 } : state;
  return {
    drawn,
    most: votes,
    leading: before.leading + 1,
    right: before.right + (answer.right ? 1 : 0),
    logWays,
  };
}

function merge(states: readonly VoteState[]): VoteState[] {
  const merged = new Map<string, VoteState>();
  for (const state of states) {
    const key = `${state.drawn}.${state.most}.${state.leading}.${state.right}`;
    const other = merged.get(key);
    const logWays = other === undefined ? state.logWays : logAdd(other.logWays, state.logWays);
    merged.set(key, { ...state, logWays });
  }
  return [...merged.values()];
}

const logAdd = (a: number, b: number): number => Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));
