// Which answers and pairs can be learned from as they were given, as things stand now.

import { NonFiniteError } from '../../errors.js';
import type { StoredTrajectory } from '../../trajectory/index.js';
import type { Known } from './findings.js';
import type { LoopHouse } from './house.js';
import { shareLimit, takesShare } from './key-share.js';
import type { KnownAnswer } from './known-answer.js';
import type { AnswerPair, LabelIndex } from './labels.js';
import { isTooFar, type LoggedRules, type Unusable, unusableHead, unusableRecord } from './logged.js';
import { scoreTokens } from './score-tokens.js';

type Learner = Pick<LoopHouse, 'engine' | 'run'>;

const rulesOf = ({ engine, run }: Learner, labels: LabelIndex, known: Known): LoggedRules => ({
  modelDigest: engine.info.modelDigest,
  maxTokens: Math.min(run.maxSequenceTokens, engine.info.maxSequenceTokens),
  mayTeach: (answer) => labels.mayTeach(answer),
  against: known.against,
});

/** Labelled answers, and those that a judge can tell of, by whether they can be learned from as they stand. */
export function loggedAnswers(
  house: Learner & Pick<LoopHouse, 'canJudge'>,
  labels: LabelIndex,
  known: Known,
): { readonly usable: KnownAnswer[]; readonly unusable: Readonly<Partial<Record<Unusable, number>>> } {
  const rules = rulesOf(house, labels, known);
  const usable: KnownAnswer[] = [];
  const unusable: Partial<Record<Unusable, number>> = {};
  // A vote needs a group: of a single logged answer only a judge can tell.
  for (const answer of [...labels.answers(), ...(house.canJudge ? labels.unlabelled() : [])]) {
    const reason = unusableHead(answer, rules);
    if (reason === null) usable.push(answer);
    else unusable[reason] = (unusable[reason] ?? 0) + 1;
  }
  return { usable: known.ordered(usable, ({ head }) => [head.id]), unusable };
}

/** Estimators that compare within a group. The others know no groups: a pair's 1 and 0 would be set against all other rewards. */
const BY_GROUP: ReadonlySet<string> = new Set(['grpo', 'group-mean', 'rloo', 'reinforce++-baseline']);

/** Whether answers that people compared can be learned from as a group. */
export const learnsPairs = ({ run }: Pick<LoopHouse, 'run'>): boolean =>
  BY_GROUP.has(run.objective.advantage);

/** Pairs both answers of which may be learned from, no key above its share of `most`. */
export function usablePairs(
  house: Learner & Pick<LoopHouse, 'settings'>,
  labels: LabelIndex,
  known: Known,
  most = Number.POSITIVE_INFINITY,
): AnswerPair[] {
  if (!learnsPairs(house)) return [];
  const rules = { ...rulesOf(house, labels, known), withAsked: true };
  const limit = shareLimit(house.settings.keyShare, most);
  const weight = new Map<string, number>();
  const taken = new Set<string>();
  const pairs: AnswerPair[] = [];
  for (const pair of known.ordered(labels.pairs(), ({ better, worse }) => [better.head.id, worse.head.id])) {
    if (pairs.length >= most) break;
    const both = [pair.better, pair.worse];
    // An answer is in one group of a step.
    if (both.some(({ head }) => taken.has(head.id))) continue;
    if (both.some((answer) => unusableHead(answer, rules) !== null)) continue;
    if (!takesShare({ sources: pair.sources, head: pair.better.head }, weight, limit)) continue;
    for (const { head } of both) taken.add(head.id);
    pairs.push(pair);
  }
  return pairs;
}

/** By the whole record, and by how far the present policy is from the one that sampled it; null: it may be used. */
export async function whyNotLogged(
  house: LoopHouse,
  stored: StoredTrajectory,
  adapter: string | null,
  signal: AbortSignal,
): Promise<Unusable | null> {
  const reason = unusableRecord(stored);
  if (reason !== null) return reason;
  for (;;) {
    const { generator, yielded } = house.priority.training(signal);
    try {
      const now = await scoreTokens(generator, stored.record, adapter);
      if (!yielded()) return isTooFar(stored, now) ? 'too far from the present policy' : null;
    } catch (error) {
      if (signal.aborted) throw error;
      // As a distance that is no number: nothing to reweight by.
      if (error instanceof NonFiniteError) return 'too far from the present policy';
      if (!yielded()) throw error;
    }
  }
}
