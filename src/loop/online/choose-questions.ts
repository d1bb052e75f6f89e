// Which questions the next step is about: shuffled passes over all that may be trained on, no key above its share.

import { sha256Hex } from '../../util/digest.js';
import { shareLimit, takesShare } from './key-share.js';
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
  /** Of a step that is chosen in parts: its questions in all, and what its keys have of them so far. */
  readonly step?: { readonly count: number; readonly weight: Map<string, number> };
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
  { count, seed, keyShare, step = { count, weight: new Map() } }: ChoiceSettings,
): Choice {
  const limit = shareLimit(keyShare, step.count);
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
      if (takesShare(answer, step.weight, limit)) chosen.set(key, answer);
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
