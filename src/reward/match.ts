// How a predicted answer is compared with gold answers (protocol, section 4). All compare in the normal form;
// null means that there was no answer.

import { normaliseAnswer, trimSpace } from '../trajectory/index.js';
import { sha256Hex } from '../util/digest.js';

/** An answer as it is compared: a long one is brought into its normal form once for all that is compared with it. */
interface Prediction {
  readonly text: string;
  readonly normal: string;
}

const readPrediction = (text: string | null): Prediction | null =>
  text === null ? null : { text, normal: normaliseAnswer(text) };

/** A gold answer without letters or digits but articles ("A", "The") is compared as it is written. */
function equals(prediction: Prediction, gold: string): boolean {
  const normal = normaliseAnswer(gold);
  if (normal !== '') return prediction.normal === normal;
  const plain = plainOf(gold);
  return plain !== '' && plainOf(prediction.text) === plain;
}

/** An empty prediction equals none. */
function equalsAny(prediction: Prediction | null, golds: readonly string[]): 0 | 1 {
  if (prediction === null || trimSpace(prediction.text) === '') return 0;
  return golds.some((gold) => equals(prediction, gold)) ? 1 : 0;
}

const plainOf = (text: string): string => trimSpace(text).toLowerCase();

/** EM: 1 where the normalised prediction equals any normalised gold answer. */
export const exactMatch = (prediction: string | null, golds: readonly string[]): 0 | 1 =>
  equalsAny(readPrediction(prediction), golds);

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

export interface Match {
  /** See {@link exactMatch}. */
  readonly em: 0 | 1;
  /** 1 where a gold answer is a contiguous part, in characters, of the prediction; an empty one never is. */
  readonly subEm: 0 | 1;
  /** Harmonic mean of precision and recall over bags of words, for the best gold answer; in [0, 1]. */
  readonly f1: number;
}

export function compareAnswer(text: string | null, golds: readonly string[]): Match {
  const prediction = readPrediction(text);
  if (prediction === null) return { em: 0, subEm: 0, f1: 0 };
  const { normal } = prediction;
  const goldNormals = golds.map(normaliseAnswer);
  const isPart = goldNormals.some((gold) => gold !== '' && normal.includes(gold));
  const bag = bagOf(normal);
  return {
    em: equalsAny(prediction, golds),
    subEm: isPart ? 1 : 0,
    f1: Math.max(0, ...goldNormals.map((gold) => bagF1(bag, bagOf(gold)))),
  };
}

interface Bag {
  readonly size: number;
  readonly counts: ReadonlyMap<string, number>;
}

function bagOf(normal: string): Bag {
  const words = normal === '' ? [] : normal.split(' ');
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return { size: words.length, counts };
}

function bagF1(prediction: Bag, gold: Bag): number {
  let same = 0;
  for (const [word, count] of gold.counts) same += Math.min(count, prediction.counts.get(word) ?? 0);
  return same === 0 ? 0 : (2 * same) / (prediction.size + gold.size);
}
