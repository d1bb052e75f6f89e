// How a predicted answer is compared with gold answers (protocol, section 4). All compare in the normal form;
// null means that there was no answer.

import { normaliseAnswer, trimSpace } from '../trajectory/index.js';
import { sha256Hex } from '../util/digest.js';

/** A gold answer without letters or digits but articles ("A", "The") is compared as it is written. */
function equals(prediction: string, gold: string): boolean {
  const normal = normaliseAnswer(gold);
  if (normal !== '') return normaliseAnswer(prediction) === normal;
  const plain = plainOf(gold);
  return plain !== '' && plainOf(prediction) === plain;
}

const plainOf = (text: string): string => trimSpace(text).toLowerCase();

/** The first gold answer that the prediction equals; null when there is none. An empty prediction equals none. */
export function matchingGold(prediction: string | null, golds: readonly string[]): string | null {
  if (prediction === null || trimSpace(prediction) === '') return null;
  return golds.find((gold) => equals(prediction, gold)) ?? null;
}

/** EM: 1 where the normalised prediction equals any normalised gold answer. */
export const exactMatch = (prediction: string | null, golds: readonly string[]): 0 | 1 =>
  matchingGold(prediction, golds) === null ? 0 : 1;

/** Enough of an answer to tell which gold answers it equals, and not the answer. */
export interface AnswerFingerprint {
  /** Digest of its normal form; null where that is empty. */
  readonly normal: string | null;
  /** Digest of what is compared with a gold answer whose normal form is empty. */
  readonly plain: string;
}

export function fingerprintOf(prediction: string): AnswerFingerprint {
  const normal = normaliseAnswer(prediction);
  return { normal: normal === '' ? null : sha256Hex(normal), plain: sha256Hex(plainOf(prediction)) };
}

/** {@link exactMatch} of the answer that the fingerprint was taken of. */
export function fingerprintMatch(prediction: AnswerFingerprint | null, golds: readonly string[]): 0 | 1 {
  if (prediction === null) return 0;
  const matches = golds.some((gold) => {
    const normal = normaliseAnswer(gold);
    if (normal !== '') return prediction.normal === sha256Hex(normal);
    return plainOf(gold) !== '' && prediction.plain === sha256Hex(plainOf(gold));
  });
  return matches ? 1 : 0;
}

/** 1 where a gold answer is a contiguous part, in characters, of the prediction; an empty one never is. */
export function subExactMatch(prediction: string | null, golds: readonly string[]): 0 | 1 {
  if (prediction === null) return 0;
  const text = normaliseAnswer(prediction);
  return golds.map(normaliseAnswer).some((gold) => gold !== '' && text.includes(gold)) ? 1 : 0;
}

/** Harmonic mean of precision and recall over bags of words, for the best gold answer; in [0, 1]. */
export function f1Score(prediction: string | null, golds: readonly string[]): number {
  if (prediction === null) return 0;
  const words = wordsOf(prediction);
  return Math.max(0, ...golds.map((gold) => bagF1(words, wordsOf(gold))));
}

function wordsOf(text: string): string[] {
  const normal = normaliseAnswer(text);
  return normal === '' ? [] : normal.split(' ');
}

function bagF1(prediction: readonly string[], gold: readonly string[]): number {
  const left = new Map<string, number>();
  for (const word of gold) left.set(word, (left.get(word) ?? 0) + 1);
  let same = 0;
  for (const word of prediction) {
    const count = left.get(word) ?? 0;
    if (count > 0) same += 1;
    left.set(word, count - 1);
  }
  return same === 0 ? 0 : (2 * same) / (prediction.length + gold.length);
}
