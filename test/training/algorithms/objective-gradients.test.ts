// Every loss and add-on: the gradients are those of the loss, by central differences over each single score.

import {
  type AlgorithmSettings,
  algorithmSettings,
  createPolicyObjective,
  createValueObjective,
} from '../../../src/training/algorithms/index.js';
import { algorithmNames } from '../../../src/training/algorithms/registry.js';
import { randomNumbers } from '../../../src/util/random.js';
import { randomBatch } from './random-batch.js';
import { atTargets, difference, sequencesOf } from './support.js';

const H = 1e-6;

const variants: readonly (readonly [string, AlgorithmSettings])[] = [
  ...algorithmNames().map((name) => [name, algorithmSettings(name)] as const),
  ['grpo with k1', algorithmSettings('grpo', { klEstimator: 'k1', klBeta: 0.3 })],
  ['grpo with k2', algorithmSettings('grpo', { klEstimator: 'k2', klBeta: 0.3 })],
  ['grpo with k3', algorithmSettings('grpo', { klEstimator: 'k3', klBeta: 0.3 })],
  ['dual clip', algorithmSettings('ppo', { dualClip: 1.1 })],
  ['gspo with wide bounds', algorithmSettings('gspo', { clipEpsilonLow: 0.2, clipEpsilonHigh: 0.3 })],
  [
    'gspo with KL by token mean',
    algorithmSettings('gspo', { aggregation: 'token-mean', clipEpsilonLow: 0.3, klBeta: 0.1 }),
  ],
  ['kl-cov on many tokens', algorithmSettings('kl-cov', { klCovShare: 0.4 })],
  ['clip-cov on many tokens', algorithmSettings('clip-cov', { clipCovShare: 0.3, clipCovLow: 0.01 })],
  ['llds', algorithmSettings('grpo', { lldsWeight: 0.7 })],
  ['echo', algorithmSettings('grpo', { echoWeight: 0.05 })],
  ['entropy bonus', algorithmSettings('grpo', { entropyBonus: 0.02 })],
  ['sft with echo and entropy', algorithmSettings('sft', { echoWeight: 0.5, entropyBonus: 0.1 })],
  ['sft with focal weights', algorithmSettings('sft', { focalGamma: 2 })],
  ['sft with half a power', algorithmSettings('sft', { focalGamma: 0.5 })],
  [
    'all at once',
    algorithmSettings('dr-grpo', {
      lldsWeight: 0.3,
      echoWeight: 0.1,
      entropyBonus: 0.05,
      klBeta: 0.2,
      dualClip: 2,
    }),
  ],
];

describe.each(variants)('%s', (_, settings) => {
  test.each([11, 12])('seed %i', (seed) => {
    const batch = randomBatch(seed);
    const objective = createPolicyObjective(sequencesOf(batch), settings, randomNumbers(3));
    const all = batch.mask.map((__, s) => s);
    const logprobs = Float64Array.from(atTargets(objective, batch.logp));
    const entropies = Float64Array.from(atTargets(objective, batch.entropies));
    if (objective.needsBatchLogprobs)
      objective.prepare(all.map((s) => atTargets(objective, batch.logp, [s])));
    const { gradients } = objective.evaluate(all, { logprobs, entropies });
    const numeric = (scores: Float64Array, i: number): number => {
      const at = (shift: number): number => {
        const moved = scores.slice();
        moved[i]! += shift;
        const given = scores === logprobs ? { logprobs: moved, entropies } : { logprobs, entropies: moved };
        return objective.evaluate(all, given).loss;
      };
      return (at(H) - at(-H)) / (2 * H);
    };
    const worst = (scores: Float64Array, analytic: Float64Array | null): number =>
      scores.reduce((gap, __, i) => Math.max(gap, Math.abs((analytic?.[i] ?? 0) - numeric(scores, i))), 0);
    // cispo's ratio is detached: its loss moves by more than the gradient says. Its own test is below.
    if (settings.policyLoss !== 'cispo') expect(worst(logprobs, gradients.logprobs)).toBeLessThan(1e-7);
    expect(worst(entropies, gradients.entropies)).toBeLessThan(1e-7);
    expect(gradients.values).toBeNull();
    expect(gradients.entropies === null).toBe(settings.entropyBonus === 0);
  });
});

test('cispo: the gradient is that of the loss with its ratio held', () => {
  const batch = randomBatch(21);
  const settings = algorithmSettings('cispo', { klPlace: 'none', cispoMax: 1.2 });
  const objective = createPolicyObjective(sequencesOf(batch), settings);
  const all = batch.mask.map((_, s) => s);
  const logprobs = atTargets(objective, batch.logp);
  const [old, engine] = [atTargets(objective, batch.logpOld), atTargets(objective, batch.logpEngine)];
  const advantages = atTargets(objective, batch.advantages);
  const held = logprobs.map((logprob, i) => {
    const weight = Math.min(Math.exp(old[i]! - engine[i]!), settings.importanceCap);
    return (-weight * Math.min(Math.exp(logprob - old[i]!), 1.2) * advantages[i]!) / logprobs.length;
  });
  const { loss, gradients } = objective.evaluate(all, { logprobs });
  expect([...gradients.logprobs!]).toEqual(held.map((wanted) => expect.closeTo(wanted, 12)));
  expect(loss).toBeCloseTo(
    held.reduce((total, weight, i) => total + weight * logprobs[i]!, 0),
    12,
  );
});

test('value loss', () => {
  const batch = randomBatch(31);
  const sequences = sequencesOf(batch).map((sequence) => ({
    ...sequence,
    valuesOld: sequence.logprobsOld!,
    returns: sequence.logprobsRef!,
  }));
  const objective = createValueObjective(sequences, { valueClip: 0.2 });
  const all = batch.mask.map((_, s) => s);
  const values = Float64Array.from(atTargets(objective, batch.logp));
  const { gradients } = objective.evaluate(all, { values });
  const numeric = values.map((_, i) => {
    const at = (shift: number): number => {
      const moved = values.slice();
      moved[i]! += shift;
      return objective.evaluate(all, { values: moved }).loss;
    };
    return (at(H) - at(-H)) / (2 * H);
  });
  expect(difference(gradients.values!, [...numeric])).toBeLessThan(1e-7);
});
