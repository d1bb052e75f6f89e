// Logged answers as training data: which may be used, and why the others may not.

import { policyDistance } from '../../training/index.js';
import type { StoredTrajectory } from '../../trajectory/index.js';
import type { KnownAnswer } from './known-answer.js';

const UNUSABLE = [
  'not explored (temperature 0 or cut sampling)',
  'held out',
  'other method',
  'other model',
  'failed the audit',
  'not audited',
  'too long',
  'answer was forced',
  'a search failed',
  'ended by its asker',
  'trained on before',
  'too far from the present policy',
  'nobody can tell what it is worth',
  'a step with it failed',
] as const;
export type Unusable = (typeof UNUSABLE)[number];

export interface LoggedLimits {
  /** Nats a token, k3 of the version that sampled against the present one. */
  readonly maxKl: number;
  /** Share of tokens whose importance ratio is above 2 or below 1/2. */
  readonly maxFarShare: number;
}

/** Limits that hold days after sampling, when versions say little about distance. */
const LOGGED_LIMITS: LoggedLimits = { maxKl: 0.1, maxFarShare: 0.1 };

export interface LoggedRules {
  readonly modelDigest: string;
  /** More than the trainer takes, or the engine's window, cannot be learned from. */
  readonly maxTokens: number;
  readonly mayTeach: (answer: KnownAnswer) => boolean;
  /** What is known beyond the head. */
  readonly against: (id: string) => Unusable | null;
  /** Also answers that their asker wanted sampled: of two that are compared, the choice of what to sample favours none. */
  readonly withAsked?: boolean;
}

/** By the record's head alone; null: it may be read and looked at more closely. */
export function unusableHead(answer: KnownAnswer, rules: LoggedRules): Unusable | null {
  const { head } = answer;
  const isSampled = head.source === 'explore' || (rules.withAsked === true && head.source === 'serve');
  if (!isSampled || head.temperature !== 1) return UNUSABLE[0];
  if (head.method !== 'search-r1') return 'other method';
  if (head.modelDigest !== rules.modelDigest) return 'other model';
  if (head.tokens > rules.maxTokens) return 'too long';
  if (head.auditState === 'quarantined') return 'failed the audit';
  if (head.auditState === 'unchecked') return 'not audited';
  if (head.stop === 'cancelled' || head.stop === 'stop') return 'ended by its asker';
  if (!rules.mayTeach(answer)) return 'held out';
  if ((head.failedSearches ?? 0) > 0) return 'a search failed';
  return rules.against(head.id);
}

/** By the whole record. Only the raw policy's own distribution can be reweighted. */
export function unusableRecord({ record }: StoredTrajectory): Unusable | null {
  const { temperature, topP, topK, minP, frequencyPenalty, presencePenalty, repetitionPenalty, logitBias } =
    record.sampling;
  const isRaw =
    temperature === 1 &&
    topP === 1 &&
    topK === 0 &&
    minP === 0 &&
    frequencyPenalty === 0 &&
    presencePenalty === 0 &&
    repetitionPenalty === 1 &&
    record.sampling.ignoreEos !== true &&
    Object.keys((logitBias ?? {}) as object).length === 0;
  if (!isRaw) return UNUSABLE[0];
  if (record.forced) return 'answer was forced';
  // What the policy did then, it did about an outage.
  if (record.searches.some(({ error }) => error !== null)) return 'a search failed';
  // Cut at the asker's own limit of tokens: not what the policy would have done.
  return record.stop === 'length' && record.sampling.maxTokens !== null ? 'ended by its asker' : null;
}

/**
 * @param now  [T] log-probabilities of the record's tokens under the policy that would be trained
 */
export function isTooFar(
  { record }: StoredTrajectory,
  now: ArrayLike<number>,
  limits: LoggedLimits = LOGGED_LIMITS,
): boolean {
  const { kl, farShare } = policyDistance(record.logprobs, now, record.lossMask);
  return !(kl <= limits.maxKl && farShare <= limits.maxFarShare);
}

const ASKING = /\b(who|whom|whose|what|which|when|where|why|how many|how much|how)\b/iu;

/** Questions that are about as hard as one another share a baseline: those that ask for the same kind of thing. */
export const clusterOf = (question: string): string => ASKING.exec(question)?.[1]?.toLowerCase() ?? 'other';
