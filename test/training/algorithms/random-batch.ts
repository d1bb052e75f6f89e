// Seeded batches for property tests: ragged, with observations, one sequence without sampled tokens.

import { randomNumbers } from '../../../src/util/random.js';
import type { Matrix } from './support.js';

export interface RandomBatch {
  readonly mask: Matrix;
  readonly environment: Matrix;
  readonly logp: Matrix;
  readonly logpOld: Matrix;
  readonly logpRef: Matrix;
  readonly logpEngine: Matrix;
  readonly advantages: Matrix;
  readonly entropies: Matrix;
}

export function randomBatch(seed: number, sequences = 6, width = 14): RandomBatch {
  const random = randomNumbers(seed);
  const lengths = Array.from({ length: sequences }, () => 4 + Math.floor(random() * (width - 3)));
  const matrix = (of: (s: number, t: number) => number): number[][] =>
    lengths.map((length, s) => Array.from({ length }, (_, t) => of(s, t)));
  const around = (base: Matrix, spread: number): number[][] =>
    base.map((row) => row.map((value) => Math.min(value + spread * (random() - 0.5), -1e-3)));
  const environment = matrix((_, t) => (t >= 2 && t < 4 ? 1 : 0));
  const mask = matrix((s, t) => (environment[s]![t] === 1 || s === sequences - 1 || random() < 0.15 ? 0 : 1));
  const logp = matrix(() => -0.05 - 3 * random());
  const perSequence = lengths.map(() => 2 * random() - 1);
  return {
    mask,
    environment,
    logp,
    logpOld: around(logp, 0.9),
    logpRef: around(logp, 0.8),
    logpEngine: around(logp, 2),
    advantages: matrix((s) => perSequence[s]! + 0.4 * (random() - 0.5)),
    entropies: matrix(() => 3 * random()),
  };
}

/** Puts noise wherever the mask is 0; `readsEnvironment`: but for log-probabilities of environment tokens. */
export function withNoise(batch: RandomBatch, seed: number, readsEnvironment = false): RandomBatch {
  const random = randomNumbers(seed);
  const noise = (): number => [Number.NaN, 1e30, -7 * random(), 5 * random()][Math.floor(4 * random())]!;
  const hidden = (matrix: Matrix): number[][] =>
    matrix.map((row, s) => row.map((value, t) => (batch.mask[s]![t] === 1 ? value : noise())));
  const logp = hidden(batch.logp).map((row, s) =>
    row.map((value, t) => (readsEnvironment && batch.environment[s]![t] === 1 ? batch.logp[s]![t]! : value)),
  );
  return {
    ...batch,
    logp,
    logpOld: hidden(batch.logpOld),
    logpRef: hidden(batch.logpRef),
    logpEngine: hidden(batch.logpEngine),
    advantages: hidden(batch.advantages),
    entropies: hidden(batch.entropies),
  };
}

/** The batch but for its last sequence, which has no sampled token. */
export const withoutLast = (batch: RandomBatch): RandomBatch =>
  Object.fromEntries(
    Object.entries(batch).map(([key, matrix]) => [key, matrix.slice(0, -1)]),
  ) as unknown as RandomBatch;
