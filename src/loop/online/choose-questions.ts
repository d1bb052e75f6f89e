// Which questions the next step is about: shuffled passes over all that may be trained on, no key above its share.

import { setImmediate } from 'node:timers/promises';
import { sha256Hex } from '../../util/digest.js';
import { shareLimit, takesShare } from './key-share.js';
import type { KnownAnswer } from './known-answer.js';

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

/** Hashes between two breaths of the thread, which answers requests too. */
const AT_ONCE = 1000;

/** New questions that come during a pass are met in it or in the next one: nothing but the place is remembered. */
export async function chooseQuestions(
  questions: ReadonlyMap<string, KnownAnswer>,
  place: Place,
  { count, seed, keyShare, step = { count, weight: new Map() } }: ChoiceSettings,
): Promise<Choice> {
  const limit = shareLimit(keyShare, step.count);
  const chosen = new Map<string, KnownAnswer>();
  let { pass, cursor } = place;
  let overShare = 0;
  // Two passes at most: a question is not in a step twice.
  for (let turn = 0; turn < 2 && chosen.size < count; turn++) {
    const { orders, keys } = await ordered(questions, seed, pass, cursor);
    for (const order of orders) {
      const key = keys.get(order) as string;
      if (chosen.has(key)) continue;
      if (chosen.size >= count) break;
      cursor = textOf(order);
      const answer = questions.get(key) as KnownAnswer;
      const said = { sources: answer.goldSources, head: answer.head };
      if (takesShare(said, step.weight, limit)) chosen.set(key, answer);
      else overShare++;
    }
    if (chosen.size < count) {
      pass++;
      cursor = '';
    }
  }
  return { chosen: [...chosen.values()], pass, cursor, overShare };
}

/** Order values after the cursor, rising, and whose they are. */
async function ordered(
  questions: ReadonlyMap<string, KnownAnswer>,
  seed: number,
  pass: number,
  cursor: string,
): Promise<{ readonly orders: Float64Array; readonly keys: ReadonlyMap<number, string> }> {
  const after = cursor === '' ? -1 : numberOf(cursor);
  const keys = new Map<number, string>();
  let hashed = 0;
  for (const key of questions.keys()) {
    if (++hashed % AT_ONCE === 0) await setImmediate();
    let order = numberOf(sha256Hex(`${seed}:${pass}:${key}`));
    while (keys.has(order)) order++;
    if (order > after) keys.set(order, key);
  }
  return { orders: Float64Array.from(keys.keys()).sort(), keys };
}

/** Numbers of 48 bits are exact. */
const DIGITS = 12;
const numberOf = (hex: string): number => Number.parseInt(hex.slice(0, DIGITS), 16);
const textOf = (order: number): string => order.toString(16).padStart(DIGITS, '0');
