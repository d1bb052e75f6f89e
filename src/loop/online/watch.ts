// How a new version does with those who ask: outcomes under it beside outcomes under the one before, in the order in which
// feedback came.

import type { LoopConfig } from '../../config/index.js';
import { exactMatch } from '../../reward/index.js';
import type { LabelledAnswer } from './labels.js';
import type { LoopState, WatchedOutcome } from './state.js';
import { observePair, type SequentialSettings } from './statistics/sequential-test.js';

type Watch = NonNullable<LoopState['watch']>;

export const watchSettings = (settings: LoopConfig): SequentialSettings => ({
  alpha: settings.watchAlpha,
  margin: settings.watchMargin,
  minPairs: settings.watchMinPairs,
  maxPairs: settings.watchMaxPairs,
});

/** In [0, 1]: what was said of the answer. */
export function outcomeOf({ label, head }: Pick<LabelledAnswer, 'label' | 'head'>): number {
  if (label.kind === 'reward') return Math.max(0, Math.min(1, label.value));
  return exactMatch(head.answer, label.answers);
}

/** Answers of users, not rollouts of ours nor answers that were explored. */
const isServed = ({ head }: LabelledAnswer): boolean => head.source === 'serve';

/** Number of the last word that the label rests on: a comment does not make an old label news. */
const lastSaid = ({ label }: LabelledAnswer): number =>
  Math.max(...label.sources.map(({ sequence }) => sequence));

const outcomeUnder = (answer: LabelledAnswer): WatchedOutcome => ({
  id: answer.head.id,
  outcome: outcomeOf(answer),
});

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
  settings: SequentialSettings,
): Watch {
  const newer = [...watch.newer];
  const older = [...watch.older];
  const counted = [...watch.counted];
  const known = new Set([...counted, ...newer.map(({ id }) => id), ...older.map(({ id }) => id)]);
  for (const answer of news) {
    const { id, adapterVersion } = answer.head;
    // The index has read all feedback again after a restart.
    if (!isServed(answer) || known.has(id) || lastSaid(answer) <= watch.feedback) continue;
    const side = adapterVersion === watch.version ? newer : adapterVersion === watch.against ? older : null;
    if (side === null) continue;
    side.push(outcomeUnder(answer));
    known.add(id);
  }
  let { test } = watch;
  while (newer.length > 0 && older.length > 0 && test.pairs < settings.maxPairs) {
    const [ours, theirs] = [newer.shift() as WatchedOutcome, older.shift() as WatchedOutcome];
    test = observePair(test, ours.outcome, theirs.outcome, settings);
    counted.push(ours.id, theirs.id);
  }
  const most = settings.maxPairs;
  return { ...watch, test, counted, newer: newer.slice(-most), older: older.slice(-most) };
}

/** Outcomes of a version so far, oldest first: what a successor without a canary is compared with. */
export function outcomesUnder(
  answers: readonly LabelledAnswer[],
  version: string,
  most: number,
): WatchedOutcome[] {
  return answers
    .filter((answer) => isServed(answer) && answer.head.adapterVersion === version)
    .sort((a, b) => a.head.sequence - b.head.sequence)
    .slice(-most)
    .map(outcomeUnder);
}
