// The critic's objective: what stands under the mask and how a batch is split change nothing.

import fc from 'fast-check';
import {
  addMetrics,
  createValueObjective,
  NO_METRICS,
  type Objective,
  summariseMetrics,
} from '../../../src/training/algorithms/index.js';
import type { Evaluation } from '../../../src/training/algorithms/objective.js';
import { type RandomBatch, randomBatch, withNoise, withoutLast } from './random-batch.js';
import { atTargets, sequencesOf } from './support.js';

const seeds = fc.integer({ min: 1, max: 1_000_000 });

/** Any rows of numbers do for values before and for returns. */
function objectiveOf({ mask, logpOld, advantages }: RandomBatch): Objective {
  const rows = sequencesOf({ mask, logpOld, advantages });
  const sequences = rows.map((row) => ({
    ...row,
    valuesOld: row.logprobsOld!,
    returns: row.advantages!,
  }));
  return createValueObjective(sequences, { valueClip: 0.2 });
}

const evaluate = (objective: Objective, batch: RandomBatch, part: readonly number[]): Evaluation =>
  objective.evaluate(part, { values: atTargets(objective, batch.logp, part) });

test('noise under the mask changes no bit of loss, gradients and figures', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const batch = randomBatch(seed);
      const everything = batch.mask.map((_, s) => s);
      const [clean, changed] = [batch, withNoise(batch, seed + 1)].map((b) =>
        evaluate(objectiveOf(b), b, everything),
      );
      expect(clean!.loss).toBeGreaterThan(0);
      expect(changed).toEqual(clean);
    }),
  );
});

test('any split into micro-batches adds up to the whole', () => {
  fc.assert(
    fc.property(
      seeds,
      fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 6 }),
      fc.integer({ min: 1, max: 5 }),
      (seed, order, size) => {
        const batch = randomBatch(seed);
        const objective = objectiveOf(batch);
        const whole = evaluate(objective, batch, order);
        let [loss, metrics] = [0, NO_METRICS];
        const gradients: number[] = [];
        for (let from = 0; from < order.length; from += size) {
          const piece = evaluate(objective, batch, order.slice(from, from + size));
          loss += piece.loss;
          metrics = addMetrics(metrics, piece.metrics);
          gradients.push(...piece.gradients.values!);
        }
        expect(loss).toBeCloseTo(whole.loss, 12);
        expect(gradients).toEqual([...whole.gradients.values!]);
        const [parts, all] = [summariseMetrics(metrics), summariseMetrics(whole.metrics)];
        for (const [figure, value] of Object.entries(all)) expect(parts[figure]).toBeCloseTo(value, 11);
      },
    ),
    { numRuns: 50 },
  );
});

test('a record without a sampled token changes nothing', () => {
  const batch = randomBatch(77);
  expect(batch.mask.at(-1)!.every((m) => m === 0)).toBe(true);
  const [all, fewer] = [batch, withoutLast(batch)].map((b) =>
    evaluate(
      objectiveOf(b),
      b,
      b.mask.map((_, s) => s),
    ),
  );
  expect(all).toEqual(fewer);
});
