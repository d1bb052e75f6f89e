// Rollouts and demonstrations in one update: what comes out is what the two give apart, whatever the micro-batches.

import fc from 'fast-check';
import { InvalidInputError } from '../../../src/errors.js';
import {
  addMetrics,
  algorithmSettings,
  createPolicyObjective,
  joinObjectives,
  NO_METRICS,
  type Objective,
  summariseMetrics,
} from '../../../src/training/algorithms/index.js';
import type { Evaluation } from '../../../src/training/algorithms/objective.js';
import { randomNumbers, shuffledOrder } from '../../../src/util/random.js';
import { type RandomBatch, randomBatch } from './random-batch.js';
import { atTargets, sequencesOf } from './support.js';

const ROLLOUTS = 4;
const ALGORITHMS = {
  grpo: algorithmSettings('grpo', { entropyBonus: 0.01, klBeta: 0.1 }),
  'kl-cov': algorithmSettings('kl-cov', { klCovShare: 0.2 }),
};
const sft = algorithmSettings('sft', { focalGamma: 1 });

function objectivesOf(batch: RandomBatch, name: keyof typeof ALGORITHMS) {
  const sequences = sequencesOf(batch);
  const rollouts = createPolicyObjective(sequences.slice(0, ROLLOUTS), ALGORITHMS[name]);
  const shown = createPolicyObjective(sequences.slice(ROLLOUTS), sft);
  return { rollouts, shown };
}

const rowsOf = (objective: Objective, batch: RandomBatch) =>
  objective.targets.map((_, s) => atTargets(objective, batch.logp, [s]));

const evaluate = (objective: Objective, batch: RandomBatch, part: readonly number[]): Evaluation =>
  objective.evaluate(part, {
    logprobs: atTargets(objective, batch.logp, part),
    entropies: atTargets(objective, batch.entropies, part),
  });

/** The batch from a sequence on. */
const from = (batch: RandomBatch, first: number): RandomBatch =>
  Object.fromEntries(Object.entries(batch).map(([key, rows]) => [key, rows.slice(first)])) as never;

const members = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
const seeds = fc.integer({ min: 1, max: 1_000_000 });

test.each(Object.keys(ALGORITHMS) as (keyof typeof ALGORITHMS)[])(
  '%s: loss and gradients are those of both, in any order and split',
  (name) => {
    fc.assert(
      fc.property(seeds, fc.double({ min: 0.1, max: 5, noNaN: true }), (seed, weight) => {
        const batch = randomBatch(seed, 8);
        const { rollouts, shown } = objectivesOf(batch, name);
        const both = joinObjectives(rollouts, shown, weight);
        expect(both.targets).toEqual([...rollouts.targets, ...shown.targets]);
        expect(both.needsBatchLogprobs).toBe(name === 'kl-cov');
        both.prepare(rowsOf(both, batch));
        const apart = {
          rollouts: evaluate(rollouts, batch, members(0, ROLLOUTS)),
          shown: evaluate(shown, from(batch, ROLLOUTS), members(0, 8 - ROLLOUTS)),
        };
        const wanted = new Map<string, number>();
        const note = (first: number, objective: Objective, { gradients }: Evaluation, by: number): void => {
          let at = 0;
          for (const [s, targets] of objective.targets.entries())
            for (const t of targets) {
              wanted.set(`logprobs ${s + first} ${t}`, by * (gradients.logprobs?.[at] ?? 0));
              wanted.set(`entropies ${s + first} ${t}`, by * (gradients.entropies?.[at] ?? 0));
              at++;
            }
        };
        note(0, rollouts, apart.rollouts, 1);
        note(ROLLOUTS, shown, apart.shown, weight);

        const order = shuffledOrder(8, seed);
        const cut = 1 + Math.floor(randomNumbers(seed)() * 7);
        let loss = 0;
        let metrics = NO_METRICS;
        let seen = 0;
        for (const part of [order.slice(0, cut), order.slice(cut)]) {
          const evaluation = evaluate(both, batch, part);
          loss += evaluation.loss;
          metrics = addMetrics(metrics, evaluation.metrics);
          let at = 0;
          for (const s of part)
            for (const t of both.targets[s]!) {
              for (const score of ['logprobs', 'entropies'] as const)
                expect(evaluation.gradients[score]?.[at] ?? 0).toBeCloseTo(
                  wanted.get(`${score} ${s} ${t}`)!,
                  12,
                );
              at++;
              seen++;
            }
        }
        expect(seen).toBe(wanted.size / 2);
        expect(loss).toBeCloseTo(apart.rollouts.loss + weight * apart.shown.loss, 10);
        const figures = summariseMetrics(metrics);
        expect(figures.loss).toBeCloseTo(loss, 10);
        expect(figures.demonstrationLoss).toBeCloseTo(apart.shown.loss, 10);
        // Figures without a name of their own are of rollouts alone.
        const alone = summariseMetrics(apart.rollouts.metrics);
        for (const key of ['policyLoss', 'logprob', 'entropy', 'kl'])
          expect(figures[key]).toBeCloseTo(alone[key] as number, 10);
      }),
      { numRuns: 60 },
    );
  },
);

test('a micro-batch of one kind alone, and rollouts that are none', () => {
  const batch = randomBatch(3, 8);
  const { rollouts, shown } = objectivesOf(batch, 'grpo');
  const both = joinObjectives(rollouts, shown, 2);
  const first = evaluate(both, batch, [1, 0]);
  expect(first.metrics.sums).not.toHaveProperty('demonstrationLoss');
  expect(first.loss).toBe(evaluate(rollouts, batch, [1, 0]).loss);
  const later = evaluate(both, batch, [5]);
  expect(later.metrics.sums).not.toHaveProperty('policyLoss');
  expect(later.loss).toBe(2 * evaluate(shown, from(batch, ROLLOUTS), [1]).loss);

  const none = createPolicyObjective([], ALGORITHMS.grpo);
  const alone = joinObjectives(none, shown, 1);
  expect([none.empty, alone.empty]).toEqual([true, false]);
  const rest = from(batch, ROLLOUTS);
  expect(evaluate(alone, rest, [0, 1, 2, 3]).loss).toBe(evaluate(shown, rest, [0, 1, 2, 3]).loss);
});

test('a sequence that is none of theirs is refused', () => {
  const { rollouts, shown } = objectivesOf(randomBatch(3, 8), 'grpo');
  expect(() => joinObjectives(rollouts, shown, 1).evaluate([8], { logprobs: [] })).toThrow(InvalidInputError);
});
