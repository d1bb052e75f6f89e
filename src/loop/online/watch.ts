// How a new version does with those who ask: outcomes under it beside outcomes under the one before, in the order in which
// feedback came.

import type { LoopConfig } from '../../config/index.js';
import { exactMatch } from '../../reward/index.js';
import { returnShare, type Said, takesShare } from './key-share.js';
import type { LabelledAnswer } from './known-answer.js';
import type { LoopState, WatchedOutcome } from './state.js';
import { observePair, type SequentialSettings } from './statistics/sequential-test.js';

export type Watch = NonNullable<LoopState['watch']>;

export interface WatchSettings extends SequentialSettings {
  /** Most of the answers of each side whose label comes from one key; an admin's are not counted. */
  readonly keyShare: number;
}

export const watchSettings = (settings: LoopConfig): WatchSettings => ({
  keyShare: settings.keyShare,
  alpha: settings.watchAlpha,
  margin: settings.watchMargin,
  minPairs: settings.watchMinPairs,
  maxPairs: settings.watchMaxPairs,
});

/** In [0, 1]: what was said of the answer. */
export function outcomeOf({ label, answer }: Pick<LabelledAnswer, 'label' | 'answer'>): number {
  if (label.reward !== null) return Math.max(0, Math.min(1, label.reward.value));
  return exactMatch(answer, label.golds?.answers ?? []);
}

/**
 * Answers of users, not rollouts of ours nor answers that were explored; by the method that is trained, for the base model answers
 * the others, also while it is the version to compare with; and none that met a failed search: what is said of those is said of an
 * outage, and one right after a publication would take a good version back.
 */
const isServed = ({ head }: LabelledAnswer): boolean =>
  head.source === 'serve' && head.method === 'search-r1' && (head.failedSearches ?? 0) === 0;

/** Number of the last word that the label rests on: a comment does not make an old label news. */
export const lastSaid = ({ sources }: LabelledAnswer): number =>
  Math.max(...sources.map(({ sequence }) => sequence));

const outcomeUnder = (answer: LabelledAnswer): WatchedOutcome => ({
  id: answer.head.id,
  outcome: outcomeOf(answer),
  by: answer.sources.map(({ feedbackId, keyId, role }) => ({ feedbackId, keyId, role })),
});

/** Of whom it is the word: an outcome is somebody's, whoever asked. */
const saidBy = ({ by }: WatchedOutcome): Said => ({ sources: by, head: { keyId: null } });

/** What is counted of one version, in the order in which it came, no key above its share of it. */
class Side {
  readonly #weight: Map<string, number>;
  readonly waiting: WatchedOutcome[];

  constructor(
    waiting: readonly WatchedOutcome[],
    weights: Readonly<Record<string, number>>,
    /** Outcomes that found a partner before. */
    private readonly paired: number,
    private readonly settings: WatchSettings,
  ) {
    this.waiting = [...waiting];
    this.#weight = new Map(Object.entries(weights));
  }

  /**
   * By who speaks and how many spoke, not by what is said: bets stay fair. As there is no verdict on fewer than `minPairs`
   * pairs, and the first to come are the first to be paired, no verdict rests on more of one key than its share (rounded up, or
   * four keys of a quarter each would stand still).
   */
  takes(answer: LabelledAnswer): boolean {
    const count = Math.max(this.settings.minPairs, this.paired + this.waiting.length + 1);
    if (!takesShare(answer, this.#weight, Math.max(1, Math.ceil(this.settings.keyShare * count))))
      return false;
    this.waiting.push(outcomeUnder(answer));
    return true;
  }

  /** Takes outcomes back that were counted. */
  lose(outcomes: readonly WatchedOutcome[]): void {
    for (const outcome of outcomes) returnShare(saidBy(outcome), this.#weight);
  }

  get weights(): Record<string, number> {
    return Object.fromEntries(this.#weight);
  }
}

/**
 * Adds what was said since `watch.feedback` to the pairs of a watched version.
 *
 * An answer counts once, with what was first known of it. A bet is settled by the outcome that it meets and never again: who could
 * say something else later, having seen how the test stands, would choose which bets are settled anew, and the wealth would be no
 * supermartingale any more. What still waits for a partner is not replaced either: answers of the other side, which found one at
 * once, could not be, and the two must be measured alike.
 */
export function observeOutcomes(
  watch: Watch,
  news: readonly LabelledAnswer[],
  settings: WatchSettings,
): Watch {
  const { weights, test } = watch;
  const newer = new Side(watch.newer, weights.newer, test.pairs, settings);
  const older = new Side(watch.older, weights.older, test.pairs, settings);
  const known = new Set([...watch.counted, ...outcomesOf(watch).map(({ id }) => id)]);
  const published = new Set([watch.version, ...watch.earlier]);
  let { beyondShare } = watch;
  for (const answer of news) {
    const { id, adapterVersion } = answer.head;
    // The index has read all feedback again after a restart.
    if (!isServed(answer) || known.has(id) || lastSaid(answer) <= watch.feedback) continue;
    const side = published.has(adapterVersion) ? newer : adapterVersion === watch.against ? older : null;
    if (side === null) continue;
    if (side.takes(answer)) known.add(id);
    else beyondShare++;
  }
  const next = paired({ ...watch, newer: newer.waiting, older: older.waiting, beyondShare }, settings);
  newer.lose(next.newer.slice(0, -settings.maxPairs));
  older.lose(next.older.slice(0, -settings.maxPairs));
  return {
    ...next,
    newer: next.newer.slice(-settings.maxPairs),
    older: next.older.slice(-settings.maxPairs),
    weights: { newer: newer.weights, older: older.weights },
  };
}

/** Those that wait meet, in their order. */
function paired(watch: Watch, settings: WatchSettings): Watch {
  const [pairs, newer, older] = [[...watch.pairs], [...watch.newer], [...watch.older]];
  let { test } = watch;
  while (newer.length > 0 && older.length > 0 && test.pairs < settings.maxPairs) {
    const pair = { newer: newer.shift() as WatchedOutcome, older: older.shift() as WatchedOutcome };
    test = observePair(test, pair.newer.outcome, pair.older.outcome, settings);
    pairs.push(pair);
  }
  return { ...watch, test, pairs, newer, older };
}

/** All that are counted, or wait for it, as far as it is known who said them. */
const outcomesOf = ({ pairs, newer, older }: Watch): WatchedOutcome[] => [
  ...pairs.flatMap((pair) => [pair.newer, pair.older]),
  ...newer,
  ...older,
];

/** By which a deletion of any of it is known: ids of answers, and of what was said of them. */
export const countedIds = (watch: Watch): string[] =>
  outcomesOf(watch).flatMap(({ id, by }) => [id, ...by.map(({ feedbackId }) => feedbackId)]);

/**
 * The watch that had never heard what was deleted, of an answer or of what was said of it: the others meet in their order. An answer of
 * which others spoke too is not counted again for what they said before.
 *
 * @param gone  ids of answers and of feedback
 */
export function withoutDeleted(watch: Watch, gone: ReadonlySet<string>, settings: WatchSettings): Watch {
  const isGone = ({ id, by }: WatchedOutcome): boolean =>
    gone.has(id) || by.some(({ feedbackId }) => gone.has(feedbackId));
  if (!outcomesOf(watch).some(isGone)) return watch;
  const sides = (['newer', 'older'] as const).map((name) => {
    const all = [...watch.pairs.map((pair) => pair[name]), ...watch[name]];
    const side = new Side([], watch.weights[name], 0, settings);
    side.lose(all.filter(isGone));
    return { left: all.filter((outcome) => !isGone(outcome)), weights: side.weights };
  });
  const [newer, older] = sides as [(typeof sides)[0], (typeof sides)[0]];
  const weights = { newer: newer.weights, older: older.weights };
  const anew = { ...watch, test: watch.settled, pairs: [], newer: newer.left, older: older.left, weights };
  return paired(anew, settings);
}

/** Outcomes of a version so far, oldest first: what a successor without a canary is compared with. */
export function outcomesUnder(
  answers: readonly LabelledAnswer[],
  version: string,
  settings: WatchSettings,
): { readonly outcomes: WatchedOutcome[]; readonly weights: Record<string, number> } {
  const side = new Side([], {}, 0, settings);
  const latest = answers
    .filter((answer) => isServed(answer) && answer.head.adapterVersion === version)
    .sort((a, b) => a.head.sequence - b.head.sequence)
    .slice(-settings.maxPairs);
  for (const answer of latest) side.takes(answer);
  return { outcomes: side.waiting, weights: side.weights };
}
