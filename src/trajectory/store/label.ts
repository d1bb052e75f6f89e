// The label of an answer, worked out from all that was said of it. Explicit rewards come before gold answers; an
// admin's word before all others; each key counts once, with what it said last.

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

export type Label =
  | {
      readonly kind: 'reward';
      /** Mean over the keys; in [-1, 1]. */
      readonly value: number;
      readonly sources: readonly LabelSource[];
    }
  | {
      readonly kind: 'gold';
      /** Those that at least half of the keys gave; never empty. */
      readonly answers: readonly string[];
      /** The keys that gave one of them. */
      readonly sources: readonly LabelSource[];
      /** Who gave each of them, in the order of `answers`: keys that contradict each other do not back the same one. */
      readonly backers: readonly (readonly LabelSource[])[];
    }
  /** Nothing was said, or the keys disagree: a judge or a vote may help. */
  | { readonly kind: 'none' };

/** @param entries  all feedback of one record, in any order */
export function labelOf(entries: readonly FeedbackEntry[]): Label {
  return rewardLabel(entries) ?? goldLabel(entries) ?? { kind: 'none' };
}

const rewardOf = ({ reward, rating }: FeedbackEntry): number | null => reward ?? rating;

function rewardLabel(entries: readonly FeedbackEntry[]): Label | null {
  const voices = voicesOf(entries.filter((entry) => rewardOf(entry) !== null));
  if (voices.length === 0) return null;
  const sum = voices.reduce((total, entry) => total + (rewardOf(entry) as number), 0);
  return { kind: 'reward', value: sum / voices.length, sources: voices.map(sourceOf) };
}

function goldLabel(entries: readonly FeedbackEntry[]): Label | null {
  const voices = voicesOf(
    entries.filter(({ goldAnswers }) => goldAnswers !== null && goldAnswers.length > 0),
  );
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
    kind: 'gold',
    answers: agreed.map(({ text }) => text),
    sources: voices.filter(({ keyId }) => agreed.some(({ backers }) => backers.has(keyId))).map(sourceOf),
    backers: agreed.map(({ backers }) => [...backers.values()].map(sourceOf)),
  };
}

/** The last entry of each key; only the admins' where there is one. */
function voicesOf(entries: readonly FeedbackEntry[]): FeedbackEntry[] {
  const last = new Map<string, FeedbackEntry>();
  for (const entry of entries) {
    const before = last.get(entry.keyId);
    if (before === undefined || before.sequence < entry.sequence) last.set(entry.keyId, entry);
  }
  const voices = [...last.values()].sort((a, b) => a.sequence - b.sequence);
  const admins = voices.filter(({ role }) => role === 'admin');
  return admins.length > 0 ? admins : voices;
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
