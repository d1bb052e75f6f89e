// Which questions the next step is about: shuffled passes over all that may be trained on, no key above its share.

import { sha256Hex } from '../../util/digest.js';
import type { KnownAnswer } from './labels.js';

export interface Place {
  readonly pass: number;
  /** Order value of the question that was taken last in this pass. */
  readonly cursor: string;
}

export interface ChoiceSettings {
  readonly count: number;
  readonly seed: number;
  /** Most of the questions of a step whose label comes from one key; an admin's are not counted. */
  readonly keyShare: number;
}

export interface Choice extends Place {
  readonly chosen: readonly KnownAnswer[];
  /** Questions passed over because their key had its share. */
  readonly overShare: number;
}

/** New questions that come during a pass are met in it or in the next one: nothing but the place is remembered. */
export function chooseQuestions(
  questions: ReadonlyMap<string, KnownAnswer>,
  place: Place,
  { count, seed, keyShare }: ChoiceSettings,
): Choice {
  const limit = Math.max(1, Math.floor(keyShare * count));
  const weight = new Map<string, number>();
  const chosen = new Map<string, KnownAnswer>();
  let { pass, cursor } = place;
  let overShare = 0;
  // Two passes at most: a question is not in a step twice.
  for (let turn = 0; turn < 2 && chosen.size < count; turn++) {
    for (const { key, order } of ordered(questions, seed, pass)) {
      if (order <= cursor || chosen.has(key)) continue;
      if (chosen.size >= count) break;
      cursor = order;
      const answer = questions.get(key) as KnownAnswer;
      if (takesShare(answer, weight, limit)) chosen.set(key, answer);
      else overShare++;
    }
    if (chosen.size < count) {
      pass++;
      cursor = '';
    }
  }
  return { chosen: [...chosen.values()], pass, cursor, overShare };
}

function ordered(
  questions: ReadonlyMap<string, KnownAnswer>,
  seed: number,
  pass: number,
): { readonly key: string; readonly order: string }[] {
  return [...questions.keys()]
    .map((key) => ({ key, order: sha256Hex(`${seed}:${pass}:${key}`) }))
    .sort((a, b) => (a.order < b.order ? -1 : 1));
}

/**
 * Counts the answer on its keys, in equal parts, unless one of them would go beyond its limit. An answer without a label
 * counts on the key that asked: whoever asks must not fill the steps of others either.
 */
export function takesShare(
  { sources, head }: Pick<KnownAnswer, 'sources' | 'head'>,
  weight: Map<string, number>,
  limit: number,
): boolean {
  const labelling = sources.filter(({ role }) => role !== 'admin').map(({ keyId }) => keyId);
  const asking = sources.length === 0 && head.keyId !== null ? [`asked by ${head.keyId}`] : [];
  const keys = [...new Set([...labelling, ...asking])];
  const part = 1 / Math.max(1, keys.length);
  if (keys.some((key) => (weight.get(key) ?? 0) + part > limit + 1e-9)) return false;
  for (const key of keys) weight.set(key, (weight.get(key) ?? 0) + part);
  return true;
}
