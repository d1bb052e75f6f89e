// Where the tokens of an optimizer batch lie: which are sampled, which are scored, and how a micro-batch's scores
// map back to them.

import { InvalidInputError, NonFiniteError } from '../../errors.js';
import { maskedPositions } from './masked.js';
import type { ObjectiveSequence } from './objective.js';

export interface SequenceLayout {
  readonly length: number;
  /** Token indices, ascending. */
  readonly sampled: readonly number[];
  readonly environment: readonly number[];
  /** Both, merged. */
  readonly targets: readonly number[];
  /** Where each sampled and each environment token stands in `targets`. */
  readonly sampledSlots: readonly number[];
  readonly environmentSlots: readonly number[];
}

/**
 * @param withEnvironment  retrieved tokens are scored too
 * @throws {InvalidInputError} masks that overlap, have different lengths or claim token 0, which nothing predicts
 */
export function layoutOf(sequence: ObjectiveSequence, withEnvironment: boolean): SequenceLayout {
  const length = sequence.lossMask.length;
  const sampled = maskedPositions(sequence.lossMask, 'lossMask');
  const environment = withEnvironment ? environmentOf(sequence) : [];
  const targets = [...sampled, ...environment].sort((a, b) => a - b);
  if (targets[0] === 0) {
    throw new InvalidInputError(
      'mask[0]: expected 0, since no position predicts the first token; got 1',
      'lossMask',
    );
  }
  const slots = new Map(targets.map((t, slot) => [t, slot]));
  if (slots.size !== targets.length) {
    throw new InvalidInputError(
      'a token is both sampled and retrieved: the masks overlap',
      'environmentMask',
    );
  }
  const slotsOf = (positions: readonly number[]): number[] => positions.map((t) => slots.get(t) as number);
  return {
    length,
    sampled,
    environment,
    targets,
    sampledSlots: slotsOf(sampled),
    environmentSlots: slotsOf(environment),
  };
}

function environmentOf(sequence: ObjectiveSequence): number[] {
  const mask = sequence.environmentMask;
  if (mask === undefined)
    throw new InvalidInputError('echo needs an environmentMask, got none', 'environmentMask');
  if (mask.length !== sequence.lossMask.length) {
    const wanted = sequence.lossMask.length;
    throw new InvalidInputError(
      `environmentMask: expected ${wanted} entries, got ${mask.length}`,
      'environmentMask',
    );
  }
  return maskedPositions(mask, 'environmentMask');
}

/**
 * Cuts a micro-batch's scores into its sequences.
 * @returns  for each sequence where its scores begin
 * @throws {InvalidInputError} the number of scores is not that of the targets
 */
export function offsetsOf(
  layouts: readonly SequenceLayout[],
  sequences: readonly number[],
  scores: ArrayLike<number>,
  name: string,
): number[] {
  let total = 0;
  const offsets = sequences.map((s) => {
    const layout = layouts[s];
    if (layout === undefined) {
      throw new InvalidInputError(`sequence ${s} is not in a batch of ${layouts.length}`, 'sequences');
    }
    const offset = total;
    total += layout.targets.length;
    return offset;
  });
  if (scores.length !== total) {
    throw new InvalidInputError(
      `${name}: expected ${total} scores for the targets, got ${scores.length}`,
      name,
    );
  }
  return offsets;
}

/**
 * The scores at these slots of one sequence.
 * @throws {NonFiniteError} a score is not finite
 */
export function scoresAt(
  scores: ArrayLike<number>,
  offset: number,
  slots: readonly number[],
  where: { readonly name: string; readonly sequence: number; readonly targets: readonly number[] },
): Float64Array {
  return Float64Array.from(slots, (slot) => {
    const value = scores[offset + slot] as number;
    if (Number.isFinite(value)) return value;
    const token = where.targets[slot] as number;
    throw new NonFiniteError(
      `${where.name} of sequence ${where.sequence}, token ${token}: not finite (${value})`,
      {
        details: { sequence: where.sequence, token },
      },
    );
  });
}
