// The gate: may this candidate go live? Numbers in; a verdict with a sentence for each test out. Decides, measures nothing.

import { type NonInferiority, nonInferiority } from '../statistics/non-inferiority.js';

export interface GateSettings {
  /** Fewest questions of a test; below it the gate waits. */
  readonly questions: number;
  /** Exact match may fall by less than this. */
  readonly margin: number;
  /** Of all candidates on the same questions together. */
  readonly alpha: number;
  /** Every so many publications fresh questions must confirm; 0 is never. */
  readonly confirmEvery: number;
  /** Candidates on the same questions after which fresh ones, where there are enough, must confirm too. */
  readonly maxAttempts: number;
  /** Nats a token, of the candidate against the policy that the loop started from. */
  readonly maxKl: number;
  /** The share of valid actions may fall by so much. */
  readonly maxValidityLoss: number;
}

/** One question under both versions. */
export interface GatePair {
  readonly id: string;
  readonly candidate: GateAnswer;
  readonly live: GateAnswer;
}

export interface GateAnswer {
  readonly em: 0 | 1;
  readonly validActions: number;
  readonly invalidActions: number;
}

/** What is known of a candidate before it is asked the gate's questions. */
export interface GateLimits {
  /** Nats a token; not finite: it could not be measured. */
  readonly kl: number;
  /** Largest change of a log-probability on the probe prompt. */
  readonly probeChange: number;
  /** Records that were deleted after the candidate was trained on them. */
  readonly deletedRecords: number;
}

export interface GateEvidence extends GateLimits {
  readonly pairs: readonly GatePair[];
  /** What this candidate may spend of alpha. */
  readonly alpha: number;
  /** Fresh questions, candidate against the version that was confirmed last; null: none are due, or not asked yet. */
  readonly confirmation: readonly GatePair[] | null;
}

export interface GateTest {
  readonly name: 'probe' | 'lineage' | 'kl' | 'validity' | 'non-inferiority' | 'confirmation';
  readonly passed: boolean;
  readonly value: number;
  readonly limit: number;
  readonly words: string;
}

export interface GateVerdict {
  readonly verdict: 'passed' | 'refused' | 'waits';
  readonly tests: readonly GateTest[];
  /** Of the tests that failed; empty where it passed. */
  readonly reasons: readonly string[];
}

/** A change below this is rounding. */
const LEAST_CHANGE = 1e-5;

export function decideGate(evidence: GateEvidence, settings: GateSettings): GateVerdict {
  const { pairs, confirmation } = evidence;
  const short = shortage(pairs.length, confirmation?.length ?? null, settings);
  if (short !== null) return { verdict: 'waits', tests: [], reasons: [short] };
  return verdictOf([
    ...limitTests(evidence, settings),
    validityTest(evidence, settings),
    inferiorityTest('non-inferiority', evidence.pairs, evidence.alpha, settings.margin),
    ...(evidence.confirmation === null
      ? []
      : [inferiorityTest('confirmation', evidence.confirmation, settings.alpha, settings.margin)]),
  ]);
}

/** What refuses a candidate that need not be asked anything; `passed` says no more than that nothing does. */
export const decideLimits = (limits: GateLimits, settings: GateSettings): GateVerdict =>
  verdictOf(limitTests(limits, settings));

const limitTests = (limits: GateLimits, settings: GateSettings): GateTest[] => [
  probeTest(limits),
  lineageTest(limits),
  klTest(limits, settings),
];

function verdictOf(tests: readonly GateTest[]): GateVerdict {
  const reasons = tests.filter(({ passed }) => !passed).map(({ words }) => words);
  return { verdict: reasons.length === 0 ? 'passed' : 'refused', tests, reasons };
}

/** Why the gate cannot decide yet; null where it can. @param fresh  null: none are due */
export function shortage(
  count: number,
  fresh: number | null,
  { questions }: Pick<GateSettings, 'questions'>,
): string | null {
  if (count < questions)
    return `the gate has ${count} questions and needs ${questions}: it waits for more labels by an admin or by two keys, or for a file in loop.gateData`;
  if (fresh !== null && fresh < questions)
    return `fresh questions must confirm now; ${fresh} are left and ${questions} are needed: the gate waits`;
  return null;
}

const LIMITS: ReadonlySet<GateTest['name']> = new Set(['kl', 'validity', 'lineage']);

/** Whether a refusal is for what must not be, and not for what lacks proof. */
export const breaksLimit = (tests: readonly Pick<GateTest, 'name' | 'passed'>[]): boolean =>
  tests.some(({ name, passed }) => !passed && LIMITS.has(name));

function probeTest({ probeChange }: GateLimits): GateTest {
  const passed = probeChange > LEAST_CHANGE;
  return {
    name: 'probe',
    passed,
    value: probeChange,
    limit: LEAST_CHANGE,
    words: passed
      ? `the adapter changes log-probabilities of the probe prompt by up to ${short(probeChange)}`
      : `the adapter does not change the policy: log-probabilities of the probe prompt differ by at most ${short(probeChange)}, expected more than ${LEAST_CHANGE}`,
  };
}

function lineageTest({ deletedRecords }: GateLimits): GateTest {
  const passed = deletedRecords === 0;
  return {
    name: 'lineage',
    passed,
    value: deletedRecords,
    limit: 0,
    words: passed
      ? 'all records it was trained on are there'
      : `${deletedRecords} records were deleted after it had been trained on them`,
  };
}

function klTest({ kl }: GateLimits, { maxKl }: GateSettings): GateTest {
  const passed = Number.isFinite(kl) && kl <= maxKl;
  return {
    name: 'kl',
    passed,
    value: kl,
    limit: maxKl,
    words: `KL to the policy of the loop's start is ${short(kl)} nats a token, ${passed ? 'within' : 'beyond'} the limit of ${maxKl}`,
  };
}

function validityTest({ pairs }: GateEvidence, { maxValidityLoss }: GateSettings): GateTest {
  const candidate = validShare(pairs.map((pair) => pair.candidate));
  const live = validShare(pairs.map((pair) => pair.live));
  const limit = live - maxValidityLoss;
  const passed = candidate >= limit;
  return {
    name: 'validity',
    passed,
    value: candidate,
    limit,
    words: `${percent(candidate)} of its actions are valid, ${percent(live)} of those of the live version; it must not fall below ${percent(limit)}`,
  };
}

function validShare(answers: readonly GateAnswer[]): number {
  const valid = answers.reduce((sum, answer) => sum + answer.validActions, 0);
  const all = valid + answers.reduce((sum, answer) => sum + answer.invalidActions, 0);
  return all === 0 ? 0 : valid / all;
}

function inferiorityTest(
  name: 'non-inferiority' | 'confirmation',
  pairs: readonly GatePair[],
  alpha: number,
  margin: number,
): GateTest {
  const test = nonInferiority(
    pairs.map(({ candidate }) => candidate.em),
    pairs.map(({ live }) => live.em),
    margin,
  );
  const passed = test.p <= alpha;
  return {
    name,
    passed,
    value: test.p,
    limit: alpha,
    words: inferiorityWords(name, test, passed, alpha, margin),
  };
}

function inferiorityWords(
  name: string,
  { questions, onlyCandidateRight, onlyLiveRight, difference, p }: NonInferiority,
  passed: boolean,
  alpha: number,
  margin: number,
): string {
  const on = name === 'confirmation' ? `${questions} fresh questions` : `${questions} questions`;
  const other = name === 'confirmation' ? 'the version confirmed last' : 'the live version';
  const seen = `on ${on} exact match differs by ${difference < 0 ? '' : '+'}${difference.toFixed(3)} from ${other} (${onlyCandidateRight} right only now, ${onlyLiveRight} only before)`;
  return passed
    ? `${seen}: a loss of ${margin} or more is ruled out, p = ${short(p)} <= ${short(alpha)}`
    : `${seen}: a loss of ${margin} or more is not ruled out, p = ${short(p)} > ${short(alpha)}`;
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
const short = (value: number): string =>
  Number.isFinite(value) ? String(Number(value.toPrecision(2))) : 'unknown';
