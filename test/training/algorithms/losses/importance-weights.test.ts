// Weights for the gap between engine and trainer: of a token, of a sequence, and what is told of them.

import { summariseMetrics } from '../../../../src/training/algorithms/index.js';
import {
  importanceWeights,
  sequenceImportanceWeights,
} from '../../../../src/training/algorithms/losses/importance-weights.js';
import { bare, evaluateWhole } from '../support.js';

const row = (...values: number[]): Float64Array => Float64Array.from(values);

test.each([
  ['the mean of the log ratios', row(-1, -2, -3), row(-1.5, -2, -3.1), Math.exp(0.2)],
  ['at most the cap', row(-1, -1), row(-3, -2), 2],
  ['not raised where it is low', row(-3, -2), row(-1, -1), Math.exp(-1.5)],
])('a sequence has one weight: %s', (_, old, engine, expected) => {
  const weights = sequenceImportanceWeights(old, engine, 2);
  expect(weights).toHaveLength(old.length);
  for (const weight of weights) expect(weight).toBeCloseTo(expected, 12);
});

test('a sequence without tokens has no weight', () => {
  expect(sequenceImportanceWeights(row(), row(), 2)).toHaveLength(0);
});

test('a token has its own', () => {
  const weights = importanceWeights(row(-1, -1, -3), row(-1.5, -3, -1), 2);
  expect(weights[0]).toBeCloseTo(Math.exp(0.5), 12);
  expect(weights[1]).toBe(2);
  expect(weights[2]).toBeCloseTo(Math.exp(-2), 12);
});

const batch = {
  mask: [[1, 1, 1, 1]],
  logp: [[-1, -2, -1, -3]],
  logpOld: [[-1, -2, -1, -3]],
  advantages: [[1, 1, 1, 1]],
};
/** Log ratios 0.5, 2, 0, -1.5. */
const engine = [[-1.5, -4, -1, -1.5]];

test('gspo weighs a sequence by its own, the others each token', () => {
  const loss = (algorithm: string, more = {}) =>
    evaluateWhole({ ...batch, ...more }, bare(algorithm, { importanceCap: 3 })).evaluation.loss;
  expect(loss('gspo', { logpEngine: engine }) / loss('gspo')).toBeCloseTo(Math.exp(0.25), 10);
  const weights = [Math.exp(0.5), 3, 1, Math.exp(-1.5)];
  const mean = weights.reduce((sum, weight) => sum + weight / 4, 0);
  expect(loss('grpo', { logpEngine: engine }) / loss('grpo')).toBeCloseTo(mean, 10);
});

test('the mean, the worst and both tails of the weights are told', () => {
  const { evaluation } = evaluateWhole({ ...batch, logpEngine: engine }, bare('grpo', { importanceCap: 3 }));
  const figures = summariseMetrics(evaluation.metrics);
  expect(figures.importanceWeightCapped).toBeCloseTo(0.25, 12);
  expect(figures.importanceWeightLow).toBeCloseTo(0.25, 12);
  expect(figures.importanceWeightMax).toBe(3);
  expect(figures.importanceWeight).toBeCloseTo((Math.exp(0.5) + 3 + 1 + Math.exp(-1.5)) / 4, 10);
  expect(figures.engineGap).toBeCloseTo(1, 10);
  expect(figures.engineGapMax).toBeCloseTo(2, 10);
});
