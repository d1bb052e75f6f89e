// Sequences of a micro-batch side by side, without padding, as the stages take them.

import { InvalidInputError } from '../../errors.js';
import type { MicroBatch } from '../training-model.js';

export interface Span {
  /** First row of the sequence. */
  readonly start: number;
  readonly length: number;
}

export interface PackedBatch {
  /** Rows: tokens that some target depends on. */
  readonly tokens: number;
  readonly tokenIds: Int32Array;
  /** int64 [tokens] */
  readonly positions: BigInt64Array;
  /** One for each sequence that has targets. */
  readonly spans: readonly Span[];
  /** For each target the row that it is drawn from. */
  readonly rows: Int32Array;
  /** int64 [targets] */
  readonly targetIds: BigInt64Array;
  /** Says which sequence and token a target is, for messages. */
  describe(target: number): string;
}

/**
 * Lays sequences side by side. What comes after a sequence's last target changes no score and is left out.
 * @throws {InvalidInputError} a token outside the vocabulary, a target that is no later token of its sequence, targets out
 *   of order, a sequence longer than the model's positions
 */
export function packBatch(
  { sequences }: MicroBatch,
  limits: { readonly vocabSize: number; readonly maxPositions: number },
): PackedBatch {
  const spans: Span[] = [];
  const places: { sequence: number; token: number }[] = [];
  let tokens = 0;
  for (const [sequence, { tokenIds, targets }] of sequences.entries()) {
    let before = 0;
    for (const target of targets) {
      if (!(Number.isInteger(target) && target > before && target < tokenIds.length))
        throw new InvalidInputError(
          `sequence ${sequence}: target ${target} must be above ${before} and below ${tokenIds.length}`,
          'targets',
        );
      before = target;
      places.push({ sequence, token: target });
    }
    if (before > limits.maxPositions)
      throw new InvalidInputError(
        `sequence ${sequence} has ${before} tokens, the model ${limits.maxPositions} positions`,
        'tokenIds',
      );
    checkIds(tokenIds, sequence, limits.vocabSize);
    if (before > 0) spans.push({ start: tokens, length: before });
    tokens += before;
  }
  return {
    tokens,
    spans,
    ...layOut(sequences, tokens, places),
    describe: (target) => nameOf(places[target]!),
  };
}

function checkIds(tokenIds: readonly number[], sequence: number, vocabSize: number): void {
  for (const [at, id] of tokenIds.entries())
    if (!(Number.isInteger(id) && id >= 0 && id < vocabSize))
      throw new InvalidInputError(
        `sequence ${sequence}: token ${at} is ${id}, the vocabulary has ${vocabSize}`,
        'tokenIds',
      );
}

function layOut(
  sequences: MicroBatch['sequences'],
  tokens: number,
  places: readonly { sequence: number; token: number }[],
) {
  const ids = new Int32Array(tokens);
  const positions = new BigInt64Array(tokens);
  const rows = new Int32Array(places.length);
  const targetIds = new BigInt64Array(places.length);
  let start = 0;
  let target = 0;
  for (const { tokenIds, targets } of sequences) {
    const length = targets.at(-1) ?? 0;
    for (let at = 0; at < length; at++) {
      ids[start + at] = tokenIds[at]!;
      positions[start + at] = BigInt(at);
    }
    for (const token of targets) {
      rows[target] = start + token - 1;
      targetIds[target++] = BigInt(tokenIds[token]!);
    }
    start += length;
  }
  return { tokenIds: ids, positions, rows, targetIds };
}

const nameOf = ({ sequence, token }: { sequence: number; token: number }): string =>
  `sequence ${sequence}, token ${token}`;
