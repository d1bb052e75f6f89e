// Gradients of one optimizer batch, micro-batch by micro-batch; and scores of sequences without gradients.

import { setImmediate as giveWay } from 'node:timers/promises';
import { CancelledError } from '../../errors.js';
import {
  addMetrics,
  type MetricSums,
  NO_METRICS,
  type Objective,
  scoreGradients,
} from '../algorithms/index.js';
import { packMicroBatches } from '../batch/packing.js';
import type { MicroBatch, Scores, TrainingLane, TrainingModel } from '../training-model.js';

/** How the work of a step is watched and stopped. */
export interface StepControl {
  /** Most tokens that run at once, in all lanes together; a longer sequence runs alone. */
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

interface Micro {
  /** Indices into the batch. */
  readonly members: readonly number[];
  readonly batch: MicroBatch;
  readonly tokens: number;
}

/**
 * The micro-batches of those sequences that have targets. Where several lanes share the tokens, a sequence that is longer
 * than a lane's share has all of them for itself.
 */
function microBatches(
  rows: TokenRows,
  targets: readonly (readonly number[])[],
  maxTokens: number,
  lanes: number,
): { readonly long: readonly Micro[]; readonly short: readonly Micro[] } {
  // Nothing reads what stands behind the last target.
  const needed = targets.map((list) => (list.length === 0 ? 0 : (list.at(-1) as number) + 1));
  const share = Math.max(1, Math.floor(maxTokens / lanes));
  const pack = (most: number, belongs: (tokens: number) => boolean): Micro[] =>
    packMicroBatches(
      needed.map((tokens) => (belongs(tokens) ? tokens : 0)),
      most,
    ).map((members) => ({
      members,
      tokens: members.reduce((sum, index) => sum + (needed[index] as number), 0),
      batch: {
        sequences: members.map((index) => ({
          tokenIds: (rows[index] as readonly number[]).slice(0, needed[index] as number),
          targets: targets[index] as readonly number[],
        })),
      },
    }));
  return {
    long: pack(maxTokens, (tokens) => tokens > share),
    short: pack(share, (tokens) => tokens <= share),
  };
}

/**
 * Runs the micro-batches of a batch over the lanes of a model, as many tokens at once as the control allows. Which lane
 * runs which micro-batch depends on the lengths alone, so that sums of gradients come out the same every time.
 * @returns what `run` gave, in the order of the micro-batches
 */
async function overLanes<T>(
  model: TrainingModel,
  rows: TokenRows,
  targets: readonly (readonly number[])[],
  control: StepControl,
  run: (lane: TrainingLane, micro: Micro) => Promise<T>,
): Promise<{ readonly micros: readonly Micro[]; readonly results: readonly T[] }> {
  const { long, short } = microBatches(rows, targets, control.microBatchTokens, model.lanes.length);
  const micros = [...long, ...short];
  const results: T[] = [];
  const failures: unknown[] = [];
  const runLane = async (lane: TrainingLane, indices: readonly number[]): Promise<void> => {
    for (const index of indices) {
      await giveWay();
      if (failures.length > 0) return;
      try {
        control.throwIfCancelled();
        const micro = micros[index] as Micro;
        results[index] = await run(lane, micro);
        control.onTokens?.(micro.tokens);
      } catch (error) {
        failures.push(error);
        // The other lanes need not go on, but must have ended before anything else runs.
        model.terminate();
      }
    }
  };
  await runLane(model, [...long.keys()]);
  const lanes = short.length === 1 ? [model] : model.lanes;
  const work = shareOut(short, lanes.length).map((indices) => indices.map((index) => long.length + index));
  await Promise.all(lanes.map((lane, i) => runLane(lane, work[i] as readonly number[])));
  if (failures.length > 0) {
    model.forgetTermination();
    // Lanes that were ended by another's failure say only that.
    throw failures.find((error) => !(error instanceof CancelledError)) ?? failures[0];
  }
  return { micros, results };
}

/** Indices of the micro-batches of each lane: each goes to the lane with the fewest tokens so far. */
function shareOut(micros: readonly Micro[], lanes: number): readonly (readonly number[])[] {
  const shares = Array.from({ length: lanes }, () => ({ indices: [] as number[], tokens: 0 }));
  for (const [index, { tokens }] of micros.entries()) {
    const least = shares.reduce((a, b) => (b.tokens < a.tokens ? b : a));
    least.indices.push(index);
    least.tokens += tokens;
  }
  return shares.map(({ indices }) => indices);
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
  const { micros, results } = await overLanes(
    model,
    rows,
    objective.targets,
    control,
    async (lane, micro) => {
      const evaluation = objective.evaluate(micro.members, await lane.forward(micro.batch));
      control.throwIfCancelled();
      await lane.backward(scoreGradients(evaluation));
      return evaluation;
    },
  );
  model.gatherGradients();
  return {
    loss: results.reduce((sum, { loss }) => sum + loss, 0),
    tokens: micros.reduce((sum, { tokens }) => sum + tokens, 0),
    metrics: results.map(({ metrics }) => metrics).reduce(addMetrics, NO_METRICS),
  };
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
): Promise<readonly Scores[]> {
  const none = new Float32Array(0);
  const found: Scores[] = rows.map(() => ({ logprobs: none, entropies: none, values: none }));
  const { micros, results } = await overLanes(model, rows, targets, control, (lane, { batch }) =>
    lane.score(batch),
  );
  for (const [at, { members }] of micros.entries()) {
    const { logprobs, entropies, values } = results[at] as Scores;
    let from = 0;
    for (const index of members) {
      const to = from + (targets[index] as readonly number[]).length;
      const part = (scores: Float32Array): Float32Array => scores.slice(from, to);
      found[index] = { logprobs: part(logprobs), entropies: part(entropies), values: part(values) };
      from = to;
    }
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
