// How a new version does with those who ask: outcomes under it beside outcomes under the one before, in the order in which
// feedback came.

import type { LoopConfig } from '../../config/index.js';
import { exactMatch } from '../../reward/index.js';
import type { LabelledAnswer } from './labels.js';
import type { LoopState } from './state.js';
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

/** Adds what was said since to the pairs of a watched version. */
export function observeOutcomes(
  watch: Watch,
  news: readonly LabelledAnswer[],
  settings: SequentialSettings,
): Watch {
  const newer = [...watch.newer];
  const older = [...watch.older];
  for (const answer of news) {
    if (!isServed(answer)) continue;
    if (answer.head.adapterVersion === watch.version) newer.push(outcomeOf(answer));
    else if (answer.head.adapterVersion === watch.against) older.push(outcomeOf(answer));
  }
  let { test } = watch;
  while (newer.length > 0 && older.length > 0)
    test = observePair(test, newer.shift() as number, older.shift() as number, settings);
  return { ...watch, test, newer: newer.slice(-settings.maxPairs), older: older.slice(-settings.maxPairs) };
}

/** Outcomes of a version so far, oldest first: what a successor without a canary is compared with. */
export function outcomesUnder(answers: readonly LabelledAnswer[], version: string, most: number): number[] {
  return answers
    .filter((answer) => isServed(answer) && answer.head.adapterVersion === version)
    .sort((a, b) => a.head.sequence - b.head.sequence)
    .slice(-most)
    .map(outcomeOf);
}
