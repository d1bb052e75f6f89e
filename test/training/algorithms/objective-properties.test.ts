// What holds for every objective: masked entries, the split into micro-batches and empty sequences change nothing.

import fc from 'fast-check';
import {
  type AlgorithmSettings,
  addMetrics,
  algorithmSettings,
  createPolicyObjective,
  NO_METRICS,
  type Objective,
  type ObjectiveSequence,
  scoreGradients,
  summariseMetrics,
} from '../../../src/training/algorithms/index.js';
import type { Evaluation } from '../../../src/training/algorithms/objective.js';
import { algorithmNames } from '../../../src/training/algorithms/registry.js';
import { randomNumbers } from '../../../src/util/random.js';
import { type RandomBatch, randomBatch, withNoise, withoutLast } from './random-batch.js';
import { atTargets, sequencesOf } from './support.js';

const variants: readonly (readonly [string, AlgorithmSettings])[] = [
  ...algorithmNames().map(
    (name) => [name, algorithmSettings(name, { klCovShare: 0.2, clipCovLow: 0.01 })] as const,
  ),
  ['add-ons', algorithmSettings('grpo', { lldsWeight: 0.2, entropyBonus: 0.01, klBeta: 0.1 })],
  [
    'constant denominator',
    algorithmSettings('grpo', { aggregation: 'seq-mean-token-sum-norm', tokenSumNorm: 9 }),
  ],
  ['echo', algorithmSettings('reinforce', { echoWeight: 0.05 })],
];

function objectiveOf(batch: RandomBatch, settings: AlgorithmSettings): Objective {
  const objective = createPolicyObjective(sequencesOf(batch), settings, randomNumbers(5));
  const rows = batch.mask.map((_, s) => atTargets(objective, batch.logp, [s]));
  objective.prepare(rows);
  return objective;
}

function evaluate(objective: Objective, batch: RandomBatch, part: readonly number[]): Evaluation {
  return objective.evaluate(part, {
    logprobs: atTargets(objective, batch.logp, part),
    entropies: atTargets(objective, batch.entropies, part),
  });
}

const everything = (batch: RandomBatch): number[] => batch.mask.map((_, s) => s);
const seeds = fc.integer({ min: 1, max: 1_000_000 });

describe.each(variants)('%s', (_, settings) => {
  test('noise under the mask changes no bit of loss, gradients and metrics', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const batch = randomBatch(seed);
        const noisy = withNoise(batch, seed + 1, settings.echoWeight > 0);
        const [clean, changed] = [batch, noisy].map((b) =>
          evaluate(objectiveOf(b, settings), b, everything(b)),
        );
        expect(changed).toEqual(clean);
      }),
      { numRuns: 30 },
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
          const objective = objectiveOf(batch, settings);
          const whole = evaluate(objective, batch, everything(batch));
          let [loss, metrics] = [0, NO_METRICS];
          const gradients = new Map<number, Float64Array>();
          for (let from = 0; from < order.length; from += size) {
            const part = order.slice(from, from + size);
            const piece = evaluate(objective, batch, part);
            loss += piece.loss;
            metrics = addMetrics(metrics, piece.metrics);
            let offset = 0;
            for (const s of part) {
              gradients.set(
                s,
                piece.gradients.logprobs!.slice(offset, (offset += objective.targets[s]!.length)),
              );
            }
          }
          expect(Math.abs(loss - whole.loss)).toBeLessThan(1e-12);
          const joined = everything(batch).flatMap((s) => [...gradients.get(s)!]);
          expect(joined).toEqual([...whole.gradients.logprobs!]);
          const [parts, all] = [summariseMetrics(metrics), summariseMetrics(whole.metrics)];
          expect(Object.keys(parts).sort()).toEqual(Object.keys(all).sort());
          for (const [figure, value] of Object.entries(all)) expect(parts[figure]).toBeCloseTo(value, 11);
        },
      ),
      { numRuns: 30 },
    );
  });

  test('a record without sampled tokens changes nothing', () => {
    const batch = randomBatch(77);
    const last = batch.mask.length - 1;
    expect(batch.mask[last]!.every((m) => m === 0)).toBe(true);
    const environment = batch.environment.map((row, s) => (s === last ? row.map(() => 0) : row));
    const emptied = { ...batch, environment };
    const [a, b] = [emptied, withoutLast(emptied)].map((data) =>
      evaluate(objectiveOf(data, settings), data, everything(data)),
    );
    expect(a).toEqual(b);
  });
});

test('without old log-probabilities the current ones stand in for them', () => {
  const batch = randomBatch(8);
  const settings = algorithmSettings('grpo', { lldsWeight: 1 });
  const { logpOld: _, ...fresh } = batch;
  const onPolicy = createPolicyObjective(sequencesOf(fresh), settings);
  const same = createPolicyObjective(sequencesOf({ ...batch, logpOld: batch.logp }), settings);
  const ours = evaluate(onPolicy, batch, everything(batch));
  expect(ours).toEqual(evaluate(same, batch, everything(batch)));
  const figures = summariseMetrics(ours.metrics);
  expect([figures['approxKl'], figures['clipFraction'], figures['ratioMax']]).toEqual([0, 0, 1]);
});

test('echo adds a gradient to exactly the environment tokens', () => {
  const batch = randomBatch(9);
  const weight = 0.05;
  const [plain, echo] = [0, weight].map((echoWeight) =>
    createPolicyObjective(sequencesOf(batch), algorithmSettings('grpo', { echoWeight })),
  ) as [Objective, Objective];
  const [without, added] = [plain, echo].map((o) => evaluate(o, batch, everything(batch))) as [
    Evaluation,
    Evaluation,
  ];
  const environmentTokens = batch.environment.flat().reduce((a, b) => a + b, 0);
  expect(environmentTokens).toBeGreaterThan(0);
  let [slot, sampled] = [0, 0];
  let crossEntropy = 0;
  echo.targets.forEach((targets, s) => {
    for (const t of targets) {
      const gradient = added.gradients.logprobs![slot++]!;
      if (batch.environment[s]![t - 1] === 1) {
        crossEntropy -= batch.logp[s]![t - 1]! / environmentTokens;
        expect(gradient).toBeCloseTo(-weight / environmentTokens, 15);
      } else {
        expect(batch.mask[s]![t - 1]).toBe(1);
        expect(gradient).toBe(without.gradients.logprobs![sampled++]);
      }
    }
  });
  expect(sampled).toBe(without.gradients.logprobs!.length);
  expect(added.loss - without.loss).toBeCloseTo(weight * crossEntropy, 12);
  expect(summariseMetrics(added.metrics)['entropy']).toBe(summariseMetrics(without.metrics)['entropy']);
});

test('targets: the last prompt token predicts the first sampled one, and the end token is trained', () => {
  const sequence = { lossMask: [0, 0, 0, 1, 1, 1], groupId: '', reward: 1, advantages: [0, 0, 0, 1, 1, 1] };
  const objective = createPolicyObjective([sequence], algorithmSettings('reinforce', { klPlace: 'none' }));
  expect(objective.targets).toEqual([[3, 4, 5]]);
  const { gradients } = objective.evaluate([0], { logprobs: [-1, -2, -3] });
  expect(scoreGradients({ loss: 0, gradients, metrics: NO_METRICS })).toEqual({
    logprobs: Float32Array.from([-1 / 3, -1 / 3, -1 / 3]),
  });
});

test('one kept and three truncated: the loss is that of the kept one; all truncated: nothing to train', () => {
  const kept: ObjectiveSequence = { lossMask: [0, 1, 1], groupId: '', reward: 1, advantages: [0, 1, -2] };
  const truncated: ObjectiveSequence = { lossMask: [0, 0, 0], groupId: '', reward: 0, advantages: [9, 9, 9] };
  for (const aggregation of ['seq-mean-token-mean', 'token-mean', 'seq-mean-token-sum-norm'] as const) {
    const settings = algorithmSettings('grpo', { klPlace: 'none', aggregation });
    const lone = createPolicyObjective([kept], settings);
    const four = createPolicyObjective([truncated, kept, truncated, truncated], settings);
    expect(four.evaluate([0, 1, 2, 3], { logprobs: [-1, -2] })).toEqual(
      lone.evaluate([0], { logprobs: [-1, -2] }),
    );
    const none = createPolicyObjective([truncated, truncated], settings);
    expect(none.empty).toBe(true);
    expect(none.evaluate([0, 1], { logprobs: [] }).loss).toBe(0);
  }
});

test('what does not fit is named', () => {
  const good: ObjectiveSequence = { lossMask: [0, 1, 1], groupId: '', reward: 0, advantages: [0, 1, 1] };
  const settings = algorithmSettings('grpo', { klPlace: 'none' });
  const make = (
    change: Partial<ObjectiveSequence>,
    overrides: Partial<AlgorithmSettings> = {},
  ): (() => Objective) => {
    return () => createPolicyObjective([{ ...good, ...change }], { ...settings, ...overrides });
  };
  expect(make({ lossMask: [1, 1, 1] })).toThrow('mask[0]: expected 0');
  expect(make({ lossMask: [0, 0.5, 1] })).toThrow('lossMask[1]: expected 0 or 1, got 0.5');
  expect(make({ logprobsOld: [0, -1] })).toThrow('logprobsOld: expected 3 entries as in the mask, got 2');
  expect(make({ logprobsOld: [0, -1, Number.NaN] })).toThrow('logprobsOld[2]: not finite (NaN)');
  expect(make({}, { klPlace: 'loss' })).toThrow('KL in the loss needs logprobsRef, got none');
  expect(make({}, { echoWeight: 1 })).toThrow('echo needs an environmentMask');
  expect(make({ environmentMask: [0, 1, 0] }, { echoWeight: 1 })).toThrow('the masks overlap');
  expect(make({}, { policyLoss: 'clip-cov' })).toThrow('needs a random generator');
  const { advantages: _, ...bare } = good;
  expect(() => createPolicyObjective([bare], settings)).toThrow('clipped needs advantages, got none');
  const objective = make({})();
  expect(() => objective.evaluate([0], { logprobs: [-1] })).toThrow(
    'expected 2 scores for the targets, got 1',
  );
  expect(() => objective.evaluate([1], { logprobs: [] })).toThrow('sequence 1 is not in a batch of 1');
  expect(() => objective.evaluate([0], { logprobs: [-1, Number.NaN] })).toThrow(
    'log-probability of sequence 0, token 2: not finite (NaN)',
  );
  expect(() => make({}, { policyLoss: 'kl-cov' })().evaluate([0], { logprobs: [-1, -1] })).toThrow(
    'prepare must be called before evaluate',
  );
  expect(() => make({}, { entropyBonus: 1 })().evaluate([0], { logprobs: [-1, -1] })).toThrow(
    'needs entropies',
  );
});

test('clip-cov draws other tokens with another generator, and the same with the same', () => {
  const batch = randomBatch(41, 8, 30);
  const settings = algorithmSettings('clip-cov', { clipCovShare: 0.05, clipCovLow: 0.001, klPlace: 'none' });
  const gradientWith = (seed: number): number[] => {
    const objective = createPolicyObjective(sequencesOf(batch), settings, randomNumbers(seed));
    objective.prepare(everything(batch).map((s) => atTargets(objective, batch.logp, [s])));
    const { gradients, metrics } = evaluate(objective, batch, everything(batch));
    const tokens = batch.mask.flat().reduce((a, b) => a + b, 0);
    expect(summariseMetrics(metrics)['chosenTokens']).toBe(Math.floor(0.05 * tokens));
    return [...gradients.logprobs!];
  };
  expect(gradientWith(1)).toEqual(gradientWith(1));
  expect(gradientWith(1)).not.toEqual(gradientWith(2));
});

test('gspo is a mean over sequences, whatever the aggregation of the other terms', () => {
  const batch = randomBatch(15);
  const [a, b] = (['seq-mean-token-mean', 'token-mean'] as const).map((aggregation) => {
    const settings = algorithmSettings('gspo', {
      aggregation,
      klPlace: 'none',
      clipEpsilonLow: 0.9,
      clipEpsilonHigh: 9,
    });
    return evaluate(objectiveOf(batch, settings), batch, everything(batch));
  });
  expect(a).toEqual(b);
  expect(a!.loss).not.toBe(0);
});
