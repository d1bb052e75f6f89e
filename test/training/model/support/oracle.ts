// Stored batches and gradients of PyTorch with PEFT, and the losses' derivatives written out.

import type { DecoderConfig } from '../../../../src/model/index.js';
import type { MicroBatch } from '../../../../src/training/training-model.js';
import { openWeights } from '../../../../src/weights/index.js';
import { fixture } from '../../../support/fixtures.js';

/** Tensors of a safetensors file. */
export function tensors(...path: string[]): ReadonlyMap<string, Float32Array> {
  const source = openWeights(fixture(...path));
  return new Map([...source.tensors.keys()].map((name) => [name, source.readFloat32(name)]));
}

export interface StoredSequence {
  readonly tokenIds: number[];
  readonly lossMask: number[];
  readonly advantageGrpo: number;
  readonly logp: number[];
  readonly logpOld: number[];
  readonly logpRef: number[];
  readonly values: number[];
  readonly valuesOld: number[];
  readonly returns: number[];
  readonly returnsLambda: number[];
  readonly advantagesWhitened: number[];
  readonly advantagesWhitenedLambda: number[];
}

export interface StoredBatch {
  readonly clipEpsilon: number;
  readonly beta: number;
  readonly valueClip: number;
  readonly tokenSumNorm: number;
  readonly sequences: StoredSequence[];
}

export function microBatch(sequences: readonly StoredSequence[]): MicroBatch {
  return {
    sequences: sequences.map(({ tokenIds, lossMask }) => ({
      tokenIds,
      targets: lossMask.flatMap((mask, at) => (mask === 1 ? [at] : [])),
    })),
  };
}

/** One column of the sampled tokens, sequence after sequence. */
export function sampled(
  sequences: readonly StoredSequence[],
  column: (sequence: StoredSequence, at: number) => number,
): number[] {
  return sequences.flatMap((sequence) =>
    sequence.lossMask.flatMap((mask, at) => (mask === 1 ? [column(sequence, at)] : [])),
  );
}

export interface Loss {
  readonly loss: number;
  /** Sum of the sizes of its parts, which may cancel: what an error is to be compared with. */
  readonly size: number;
  /** d loss / d score of each sampled token. */
  readonly seeds: Float32Array;
}

type Aggregation = 'token-mean' | 'seq-mean-token-mean' | 'seq-mean-token-sum-norm';

/** Weight of each sampled token in the batch's loss. */
function tokenWeights({ sequences, tokenSumNorm }: StoredBatch, mode: Aggregation): number[] {
  const counts = sequences.map(({ lossMask }) => lossMask.reduce((sum, mask) => sum + mask, 0));
  const total = counts.reduce((sum, count) => sum + count, 0);
  return counts.flatMap((count) => {
    const weight = {
      'token-mean': 1 / total,
      'seq-mean-token-mean': 1 / (count * sequences.length),
      'seq-mean-token-sum-norm': 1 / (tokenSumNorm * sequences.length),
    }[mode];
    return Array<number>(count).fill(weight);
  });
}

function summed(weights: readonly number[], part: (index: number) => { value: number; slope: number }): Loss {
  const parts = weights.map((weight, index) => ({ weight, ...part(index) }));
  return {
    loss: parts.reduce((sum, { weight, value }) => sum + weight * value, 0),
    size: parts.reduce((sum, { weight, value }) => sum + weight * Math.abs(value), 0),
    seeds: Float32Array.from(parts, ({ weight, slope }) => weight * slope),
  };
}

/** Loss and seeds of a stored case from the log-probabilities of the sampled tokens. */
export function policyLoss(name: string, batch: StoredBatch, logp: ArrayLike<number>): Loss {
  const { sequences, clipEpsilon: epsilon, beta } = batch;
  if (name.startsWith('sft'))
    return summed(tokenWeights(batch, 'token-mean'), (at) => ({ value: -logp[at]!, slope: -1 }));
  const old = sampled(sequences, (sequence, at) => sequence.logpOld[at]!);
  const reference = sampled(sequences, (sequence, at) => sequence.logpRef[at]!);
  const grpo = name.startsWith('grpo.');
  const advantages = sampled(sequences, (sequence, at) => {
    if (grpo) return sequence.advantageGrpo;
    return (name === 'ppo' ? sequence.advantagesWhitened : sequence.advantagesWhitenedLambda)[at]!;
  });
  const mode = grpo ? (name.slice('grpo.'.length) as Aggregation) : 'seq-mean-token-mean';
  return summed(tokenWeights(batch, mode), (at) => {
    const [a, ratio] = [advantages[at]!, Math.exp(logp[at]! - old[at]!)];
    const clipped = Math.min(Math.max(ratio, 1 - epsilon), 1 + epsilon);
    const isClipped = clipped * a < ratio * a;
    const difference = reference[at]! - logp[at]!;
    const k3 = grpo ? Math.exp(difference) - difference - 1 : 0;
    const k3Slope = grpo ? 1 - Math.exp(difference) : 0;
    return {
      value: -Math.min(ratio * a, clipped * a) + beta * k3,
      slope: (isClipped ? 0 : -ratio * a) + beta * k3Slope,
    };
  });
}

export function valueLoss(name: string, batch: StoredBatch, values: ArrayLike<number>): Loss {
  const { sequences, valueClip } = batch;
  const before = sampled(sequences, (sequence, at) => sequence.valuesOld[at]!);
  const returns = sampled(
    sequences,
    (sequence, at) => (name === 'value' ? sequence.returns : sequence.returnsLambda)[at]!,
  );
  return summed(tokenWeights(batch, 'token-mean'), (at) => {
    const [value, target, start] = [values[at]!, returns[at]!, before[at]!];
    const clipped = Math.min(Math.max(value, start - valueClip), start + valueClip);
    const [plain, bounded] = [(value - target) ** 2, (clipped - target) ** 2];
    const slope = plain >= bounded ? value - target : clipped === value ? clipped - target : 0;
    return { value: 0.5 * Math.max(plain, bounded), slope };
  });
}

/** Largest difference as a share of the largest stored number. */
export function relativeDifference(found: ArrayLike<number>, stored: ArrayLike<number>): number {
  expect(found.length).toBe(stored.length);
  let [worst, largest] = [0, 0];
  for (let at = 0; at < stored.length; at++) {
    const difference = Math.abs(found[at]! - stored[at]!);
    // A NaN must never pass as a small difference.
    worst = difference <= worst ? worst : Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference;
    largest = Math.max(largest, Math.abs(stored[at]!));
  }
  return worst / largest;
}

export type { DecoderConfig };
