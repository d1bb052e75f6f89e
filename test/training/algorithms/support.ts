// The oracle files of losses, and their padded matrices as the objectives take them.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type AlgorithmSettings,
  algorithmSettings,
  createPolicyObjective,
  type Objective,
  type ObjectiveSequence,
} from '../../../src/training/algorithms/index.js';
import type { Evaluation } from '../../../src/training/algorithms/objective.js';

export type Matrix = readonly (readonly number[])[];

export function readLosses<Case>(name: string): readonly Case[] {
  const path = join(__dirname, '..', '..', 'fixtures', 'losses', `${name}.json`);
  return (JSON.parse(readFileSync(path, 'utf8')) as { cases: Case[] }).cases;
}

/** Largest absolute difference; not a number when a shape or a value does not fit. */
export function difference(
  ours: readonly ArrayLike<number>[] | ArrayLike<number>,
  theirs: Matrix | readonly number[],
): number {
  const flat = (rows: readonly ArrayLike<number>[] | ArrayLike<number>): number[] =>
    Array.from(rows as ArrayLike<number | ArrayLike<number>>).flatMap((row) =>
      typeof row === 'number' ? [row] : Array.from(row),
    );
  const [a, b] = [flat(ours), flat(theirs)];
  if (a.length !== b.length) return Number.NaN;
  return a.reduce((worst, value, i) => {
    const gap = Math.abs(value - (b[i] as number));
    return Number.isNaN(gap) || Number.isNaN(worst) ? Number.NaN : Math.max(worst, gap);
  }, 0);
}

/** The oracles' matrices begin with the first sampled token; a sequence of ours begins with one that nothing predicts. */
export const led = (row: readonly number[]): number[] => [0, ...row];

export interface OracleBatch {
  readonly mask: Matrix;
  readonly logpOld?: Matrix;
  readonly logpRef?: Matrix;
  readonly logpEngine?: Matrix;
  readonly advantages?: Matrix;
  readonly environment?: Matrix;
}

export function sequencesOf(batch: OracleBatch): ObjectiveSequence[] {
  const row = (name: string, matrix: Matrix | undefined, i: number): Record<string, number[]> =>
    matrix === undefined ? {} : { [name]: led(matrix[i] as number[]) };
  return batch.mask.map((mask, i) => ({
    lossMask: led(mask as number[]),
    groupId: `group ${i}`,
    reward: 0,
    ...row('environmentMask', batch.environment, i),
    ...row('logprobsOld', batch.logpOld, i),
    ...row('logprobsRef', batch.logpRef, i),
    ...row('logprobsEngine', batch.logpEngine, i),
    ...row('advantages', batch.advantages, i),
  }));
}

/** A matrix's entries at the targets of these sequences, one after the other. */
export function atTargets(objective: Objective, matrix: Matrix, sequences?: readonly number[]): number[] {
  const wanted = sequences ?? matrix.map((_, i) => i);
  return wanted.flatMap((s) => objective.targets[s]!.map((t) => matrix[s]![t - 1] as number));
}

/** The inverse, for a whole batch; 0 elsewhere. */
export function toMatrix(objective: Objective, compact: ArrayLike<number>, like: Matrix): number[][] {
  let next = 0;
  return like.map((row, s) => {
    const full = row.map(() => 0);
    for (const t of objective.targets[s]!) full[t - 1] = compact[next++] as number;
    return full;
  });
}

/** Loss settings alone: no KL, nothing added, unless asked for. */
export const bare = (algorithm: string, overrides: Partial<AlgorithmSettings> = {}): AlgorithmSettings =>
  algorithmSettings(algorithm, { klPlace: 'none', ...overrides });

/** The whole batch in one piece. */
export function evaluateWhole(
  batch: OracleBatch & { readonly logp: Matrix },
  settings: AlgorithmSettings,
  random?: () => number,
): { readonly objective: Objective; readonly evaluation: Evaluation; readonly gradient: number[][] } {
  const objective = createPolicyObjective(sequencesOf(batch), settings, random);
  const all = batch.mask.map((_, i) => i);
  if (objective.needsBatchLogprobs) objective.prepare(all.map((s) => atTargets(objective, batch.logp, [s])));
  const evaluation = objective.evaluate(all, { logprobs: atTargets(objective, batch.logp) });
  const gradients = evaluation.gradients.logprobs as Float64Array;
  return { objective, evaluation, gradient: toMatrix(objective, gradients, batch.mask) };
}
