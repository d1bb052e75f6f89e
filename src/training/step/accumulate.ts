// Gradients of one optimizer batch, micro-batch by micro-batch; and scores of sequences without gradients.

import { setImmediate as giveWay } from 'node:timers/promises';
import { addMetrics, type MetricSums, type Objective, scoreGradients } from '../algorithms/index.js';
import { packMicroBatches } from '../batch/packing.js';
import type { MicroBatch, Scores, TrainingModel } from '../training-model.js';

/** How the work of a step is watched and stopped. */
export interface StepControl {
  /** Most tokens of a micro-batch. */
  readonly microBatchTokens: number;
  /** @throws {CancelledError} when the step shall stop; asked before each micro-batch */
  throwIfCancelled(): void;
  /** Tokens that went through the model since the last call, forward only or there and back. */
  onTokens?(tokens: number): void;
}

export interface Accumulated {
  /** Of the whole batch. */
  readonly loss: number;
  readonly metrics: MetricSums;
  /** Tokens that were run. */
  readonly tokens: number;
}

/** Token ids of each sequence of the batch. */
export type TokenRows = readonly (readonly number[])[];

/** The micro-batches of those sequences that have targets. */
function microBatches(
  rows: TokenRows,
  targets: readonly (readonly number[])[],
  maxTokens: number,
): { readonly members: readonly number[]; readonly batch: MicroBatch; readonly tokens: number }[] {
  // Nothing reads what stands behind the last target.
  const needed = targets.map((list) => (list.length === 0 ? 0 : (list.at(-1) as number) + 1));
  return packMicroBatches(needed, maxTokens).map((members) => ({
    members,
    tokens: members.reduce((sum, index) => sum + (needed[index] as number), 0),
    batch: {
      sequences: members.map((index) => ({
        tokenIds: (rows[index] as readonly number[]).slice(0, needed[index] as number),
        targets: targets[index] as readonly number[],
      })),
    },
  }));
}

/**
 * Adds the gradients of an objective to `model.parameters[].gradient`, which are cleared first.
 * @throws {NonFiniteError} a score, the loss or a gradient is not finite; says where
 * @throws {CancelledError} the control said so
 */
export async function accumulateGradients(
  model: TrainingModel,
  rows: TokenRows,
  objective: Objective,
  control: StepControl,
): Promise<Accumulated> {
  model.clearGradients();
  let loss = 0;
  let tokens = 0;
  let metrics: MetricSums | null = null;
  for (const micro of microBatches(rows, objective.targets, control.microBatchTokens)) {
    await giveWay();
    control.throwIfCancelled();
    const evaluation = objective.evaluate(micro.members, await model.forward(micro.batch));
    control.throwIfCancelled();
    await model.backward(scoreGradients(evaluation));
    loss += evaluation.loss;
    tokens += micro.tokens;
    metrics = metrics === null ? evaluation.metrics : addMetrics(metrics, evaluation.metrics);
    control.onTokens?.(micro.tokens);
  }
  return { loss, tokens, metrics: metrics ?? { sums: {}, counts: {}, maxima: {} } };
}

/**
 * Scores sequences at their targets without gradients.
 * @returns for each sequence the scores of its targets; empty arrays where it has none
 */
export async function scoreSequences(
  model: TrainingModel,
  rows: TokenRows,
  targets: readonly (readonly number[])[],
  control: StepControl,
): Promise<readonly Pick<Scores, 'logprobs' | 'values'>[]> {
  const found = rows.map(() => ({ logprobs: new Float32Array(0), values: new Float32Array(0) }));
  for (const micro of microBatches(rows, targets, control.microBatchTokens)) {
    await giveWay();
    control.throwIfCancelled();
    const { logprobs, values } = await model.score(micro.batch);
    let from = 0;
    for (const index of micro.members) {
      const to = from + (targets[index] as readonly number[]).length;
      found[index] = { logprobs: logprobs.slice(from, to), values: values.slice(from, to) };
      from = to;
    }
    control.onTokens?.(micro.tokens);
  }
  return found;
}

/** Spreads values at targets over the whole sequence; 0 elsewhere. */
export function atTargets(
  length: number,
  targets: readonly number[],
  values: ArrayLike<number>,
): Float64Array {
  const spread = new Float64Array(length);
  for (const [i, t] of targets.entries()) spread[t] = values[i] as number;
  return spread;
}
