// The reward of an answer, from whatever is known of it, in the order of trust: a reward that somebody gave, gold
// answers, a judge, the vote of its group, nothing.

import type { Tokenizer } from '../tokenizer/index.js';
import { type Label, saysNothing, type TrajectoryRecord } from '../trajectory/index.js';
import { majorityAnswer } from './majority.js';
import { exactMatch } from './match.js';
import { DEFAULT_REWARD, type RewardedRecord, type RewardSettings, scoreRecord } from './reward.js';
import type { ScoredItem, Scorer } from './scorers/scorer.js';

export type GradeSource = 'feedback' | 'gold' | 'judge' | 'majority';

export interface GradeResult {
  readonly value: number;
  readonly source: GradeSource;
  /** The rule with its settings: another rule, another text. */
  readonly rule: string;
}

export interface GradedItem {
  readonly record: TrajectoryRecord;
  readonly label: Label;
  /** Answers of its group (its own too) for a vote; absent: no vote. */
  readonly groupAnswers?: readonly (string | null)[];
  /** Against the gold answers of its label, by the same settings, where they are known already. */
  readonly scores?: RewardedRecord;
}

export interface GradeOptions {
  readonly tokenizer: Tokenizer;
  readonly settings?: RewardSettings;
  /** Takes the place of the built-in rule where gold answers are known. */
  readonly scorer?: Scorer | null;
  /** Asked where nothing is known. */
  readonly judge?: Scorer | null;
  /** Where nothing else is known, the most frequent answer of a group counts as right. */
  readonly majority?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** One result for each item, in their order; null where nothing is known: kept, not trained on. */
export async function gradeAll(
  items: readonly GradedItem[],
  options: GradeOptions,
): Promise<(GradeResult | null)[]> {
  const { scorer = null, judge = null, majority = false } = options;
  const results = items.map((item) => direct(item, options));
  if (scorer !== null)
    await fill(results, items, scorer, 'gold', ({ label }) => label.golds !== null, options.signal);
  if (judge !== null)
    await fill(results, items, judge, 'judge', ({ label }) => saysNothing(label), options.signal);
  if (majority) vote(results, items);
  return results;
}

/** What needs nobody's help. */
function direct({ record, label, scores }: GradedItem, options: GradeOptions): GradeResult | null {
  const { tokenizer, settings = DEFAULT_REWARD, scorer } = options;
  if (label.reward !== null) return { value: label.reward.value, source: 'feedback', rule: 'feedback' };
  if (label.golds === null || scorer) return null;
  const { reward } = scores ?? scoreRecord(record, tokenizer, label.golds.answers, settings);
  return { value: reward, source: 'gold', rule: ruleText(settings) };
}

async function fill(
  results: (GradeResult | null)[],
  items: readonly GradedItem[],
  scorer: Scorer,
  source: GradeSource,
  wants: (item: GradedItem) => boolean,
  signal: AbortSignal | undefined,
): Promise<void> {
  const places = [...items.keys()].filter((at) => results[at] === null && wants(items[at] as GradedItem));
  if (places.length === 0) return;
  const rewards = await scorer.score(
    places.map((at) => itemOf(items[at] as GradedItem)),
    signal,
  );
  for (const [index, at] of places.entries()) {
    const value = rewards[index] ?? null;
    if (value !== null) results[at] = { value, source, rule: scorer.name };
  }
}

function itemOf({ record, label }: GradedItem): ScoredItem {
  const { id, question, answer } = record;
  return { id, question, answer, goldAnswers: label.golds?.answers ?? [], record };
}

/** Of groups of which the judge told nothing: a verdict and a vote are no common scale, and a group's rewards are compared. */
function vote(results: (GradeResult | null)[], items: readonly GradedItem[]): void {
  const groupOf = ({ record }: GradedItem): string => record.groupId ?? record.id;
  const judged = new Set(items.filter((_, at) => results[at]?.source === 'judge').map(groupOf));
  for (const [at, item] of items.entries())
    if (saysNothing(item.label) && !judged.has(groupOf(item))) results[at] ??= voted(item);
}

function voted({ record, groupAnswers }: GradedItem): GradeResult | null {
  // A single voter has no majority.
  const winner = groupAnswers === undefined || groupAnswers.length < 2 ? null : majorityAnswer(groupAnswers);
  if (winner === null) return null;
  return { value: exactMatch(record.answer, [winner]), source: 'majority', rule: 'majority' };
}

/** Names a built-in rule with what it is set to. */
export const ruleText = ({ rule, formatWeight, searchCost }: RewardSettings): string =>
  `${rule},formatWeight=${formatWeight},searchCost=${searchCost}`;
