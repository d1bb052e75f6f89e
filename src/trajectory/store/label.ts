// The label of an answer, worked out from all that was said of it: what the answer is worth, and which answers to its question
// are right. An admin's word, of either kind, comes before all others; each key counts once for each, with what it said last.

import { normaliseAnswer } from '../answer.js';
import type { FeedbackEntry, FeedbackRole } from './types.js';

export interface LabelSource {
  readonly keyId: string;
  readonly role: FeedbackRole;
  /** The entry that counts. */
  readonly feedbackId: string;
  /** Of that entry: later ones have higher numbers. */
  readonly sequence: number;
  readonly createdAt: number;
}

export interface RewardLabel {
  /** Mean over the keys; in [-1, 1]. */
  readonly value: number;
  readonly sources: readonly LabelSource[];
}

export interface GoldLabel {
  /** Those that at least half of the keys gave; never empty. */
  readonly answers: readonly string[];
  /** The keys that gave one of them. */
  readonly sources: readonly LabelSource[];
  /** Who gave each of them, in the order of `answers`: keys that contradict each other do not back the same one. */
  readonly backers: readonly (readonly LabelSource[])[];
}

/** Both null: nothing was said, or the keys disagree; a judge or a vote may help. */
export interface Label {
  /** What this very answer is worth, by those who said so outright. */
  readonly reward: RewardLabel | null;
  /** Right answers to its question: they hold for any answer to it. */
  readonly golds: GoldLabel | null;
}

export const NO_LABEL: Label = { reward: null, golds: null };

/** Gold answers that nobody said as feedback: those of a file of questions. */
export const labelOfGolds = (answers: readonly string[]): Label => ({
  ...NO_LABEL,
  golds: { answers, sources: [], backers: [] },
});

export const saysNothing = ({ reward, golds }: Label): boolean => reward === null && golds === null;

/** @param entries  all feedback of one record, in any order */
export function labelOf(entries: readonly FeedbackEntry[]): Label {
  const rewards = lastWords(entries.filter((entry) => rewardOf(entry) !== null));
  const golds = lastWords(
    entries.filter(({ goldAnswers }) => goldAnswers !== null && goldAnswers.length > 0),
  );
  const isAdmins = ({ role }: FeedbackEntry): boolean => role === 'admin';
  // Over both kinds: what a user thinks of an answer does not take back what an admin says is right, nor the other way round.
  const counts = [...rewards, ...golds].some(isAdmins) ? isAdmins : () => true;
  return { reward: rewardLabel(rewards.filter(counts)), golds: goldLabel(golds.filter(counts)) };
}

const rewardOf = ({ reward, rating }: FeedbackEntry): number | null => reward ?? rating;

function rewardLabel(voices: readonly FeedbackEntry[]): RewardLabel | null {
  if (voices.length === 0) return null;
  const sum = voices.reduce((total, entry) => total + (rewardOf(entry) as number), 0);
  return { value: sum / voices.length, sources: voices.map(sourceOf) };
}

function goldLabel(voices: readonly FeedbackEntry[]): GoldLabel | null {
  const byAnswer = new Map<string, { readonly text: string; readonly backers: Map<string, FeedbackEntry> }>();
  for (const voice of voices)
    for (const text of voice.goldAnswers ?? []) {
      const form = formOf(text);
      const found = byAnswer.get(form) ?? { text, backers: new Map() };
      found.backers.set(voice.keyId, voice);
      byAnswer.set(form, found);
    }
  const agreed = [...byAnswer.values()].filter(({ backers }) => 2 * backers.size >= voices.length);
  if (agreed.length === 0) return null;
  return {
    answers: agreed.map(({ text }) => text),
    sources: voices.filter(({ keyId }) => agreed.some(({ backers }) => backers.has(keyId))).map(sourceOf),
    backers: agreed.map(({ backers }) => [...backers.values()].map(sourceOf)),
  };
}

/** The last entry of each key, in the order in which they came. */
function lastWords(entries: readonly FeedbackEntry[]): FeedbackEntry[] {
  const last = new Map<string, FeedbackEntry>();
  for (const entry of entries) {
    const before = last.get(entry.keyId);
    if (before === undefined || before.sequence < entry.sequence) last.set(entry.keyId, entry);
  }
  return [...last.values()].sort((a, b) => a.sequence - b.sequence);
}

/** Answers that count as one; articles alone ("A") are compared as written. */
const formOf = (text: string): string => normaliseAnswer(text) || text.trim().toLowerCase();

export const sourceOf = ({ keyId, role, id, sequence, createdAt }: FeedbackEntry): LabelSource => ({
  keyId,
  role,
  feedbackId: id,
  sequence,
  createdAt,
});
