// How a new version does with those who ask: outcomes under it beside outcomes under the one before, in the order in which
// feedback came.

import type { LoopConfig } from '../../config/index.js';
import { exactMatch } from '../../reward/index.js';
import { takesShare } from './key-share.js';
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
 * Answers of users, not rollouts of ours nor answers that were explored; and none that met a failed search: what is said of those
 * is said of an outage, and one right after a publication would take a good version back.
 */
const isServed = ({ head }: LabelledAnswer): boolean =>
  head.source === 'serve' && (head.failedSearches ?? 0) === 0;

/** Number of the last word that the label rests on: a comment does not make an old label news. */
export const lastSaid = ({ sources }: LabelledAnswer): number =>
  Math.max(...sources.map(({ sequence }) => sequence));

const outcomeUnder = (answer: LabelledAnswer): WatchedOutcome => ({
  id: answer.head.id,
  outcome: outcomeOf(answer),
});

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
  const { weights, test: begun } = watch;
  const newer = new Side(watch.newer, weights.newer, begun.pairs, settings);
  const older = new Side(watch.older, weights.older, begun.pairs, settings);
  const counted = [...watch.counted];
  const known = new Set([...counted, ...[...newer.waiting, ...older.waiting].map(({ id }) => id)]);
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
  let test = begun;
  while (newer.waiting.length > 0 && older.waiting.length > 0 && test.pairs < settings.maxPairs) {
    const [ours, theirs] = [newer.waiting.shift() as WatchedOutcome, older.waiting.shift() as WatchedOutcome];
    test = observePair(test, ours.outcome, theirs.outcome, settings);
    counted.push(ours.id, theirs.id);
  }
  const most = settings.maxPairs;
  return {
    ...watch,
    test,
    counted,
    newer: newer.waiting.slice(-most),
    older: older.waiting.slice(-most),
    weights: { newer: newer.weights, older: older.weights },
    beyondShare,
  };
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
