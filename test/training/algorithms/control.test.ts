// Adaptive KL, early stop, metrics, the registry and the presets.

import {
  AdaptiveKl,
  ALGORITHMS,
  addMetrics,
  algorithmSettings,
  NO_METRICS,
  PRESETS,
  stopsEarly,
  summariseMetrics,
} from '../../../src/training/algorithms/index.js';
import { algorithmNames } from '../../../src/training/algorithms/registry.js';

test('adaptive KL: beta rises above the target, falls below it, by a fifth at most', () => {
  const controller = new AdaptiveKl({ beta: 0.1, target: 6, horizon: 1000 });
  controller.update(6.6, 100);
  expect(controller.beta).toBeCloseTo(0.1 * 1.01, 12);
  controller.update(600, 100);
  expect(controller.beta).toBeCloseTo(0.1 * 1.01 * 1.02, 12);
  controller.update(0, 100);
  expect(controller.beta).toBeCloseTo(0.1 * 1.01 * 1.02 * 0.98, 12);
  // More rollouts than the horizon: beta falls by no more, and never below 0.
  const short = new AdaptiveKl({ beta: 0.1, target: 6, horizon: 10 });
  short.update(0, 64);
  expect(short.beta).toBeCloseTo(0.08, 12);
  expect(() => new AdaptiveKl({ beta: 0, target: 1, horizon: 1 })).toThrow('beta must be positive, got 0');
});

test('early stop at 1.5 times the target', () => {
  expect([0.014, 0.016].map((kl) => stopsEarly(kl, 0.01))).toEqual([false, true]);
  expect(stopsEarly(99, null)).toBe(false);
  expect(() => stopsEarly(1, 0)).toThrow('targetKl: expected a positive number');
});

test('metrics add up: means by count, parts by sum, greatest of maxima; a mean over nothing is left out', () => {
  const a = { sums: { mean: 3, loss: 0.5, none: 0 }, counts: { mean: 2, none: 0 }, maxima: { top: 1 } };
  const b = { sums: { mean: 1, loss: 0.25 }, counts: { mean: 2 }, maxima: { top: -4, other: 2 } };
  expect(summariseMetrics(addMetrics(addMetrics(NO_METRICS, a), b))).toEqual({
    mean: 1,
    loss: 0.75,
    top: 1,
    other: 2,
  });
});

test('defaults are those of the protocol', () => {
  expect(algorithmNames()).toEqual([
    ...['grpo', 'ppo', 'reinforce', 'rloo', 'reinforce++', 'dr-grpo', 'dapo', 'cispo', 'gspo'],
    ...['kl-cov', 'clip-cov', 'sft'],
  ]);
  expect(algorithmSettings('grpo')).toMatchObject({
    aggregation: 'seq-mean-token-mean',
    clipEpsilonLow: 0.2,
    clipEpsilonHigh: 0.2,
    dualClip: null,
    klPlace: 'loss',
    klEstimator: 'k3',
    klBeta: 0.001,
    importanceCap: 2,
    maxStaleness: 4,
    entropyBonus: 0,
    echoWeight: 0,
    lldsWeight: 0,
  });
  expect(algorithmSettings('ppo')).toMatchObject({
    advantage: 'gae',
    klPlace: 'reward',
    klEstimator: 'k1',
    valueClip: 0.2,
  });
  expect(algorithmSettings('dapo')).toMatchObject({
    clipEpsilonHigh: 0.28,
    aggregation: 'token-mean',
    klPlace: 'none',
  });
  expect(algorithmSettings('gspo')).toMatchObject({ clipEpsilonLow: 3e-4, clipEpsilonHigh: 4e-4 });
  expect(algorithmSettings('kl-cov')).toMatchObject({ klCovShare: 2e-4, klCovCoefficient: 1 });
  expect(algorithmSettings('clip-cov')).toMatchObject({ clipCovShare: 2e-4, clipCovLow: 1, clipCovHigh: 5 });
  expect(algorithmSettings('cispo')).toMatchObject({ cispoMax: 5 });
  expect(algorithmSettings('grpo', { klBeta: 0.5 }).klBeta).toBe(0.5);
  expect(Object.values(ALGORITHMS).filter((a) => a.usesCritic)).toEqual([ALGORITHMS.ppo]);
  for (const unknown of ['grp0', 'toString', '__proto__']) {
    expect(() => algorithmSettings(unknown)).toThrow(`unknown algorithm "${unknown}"; known: grpo, ppo`);
  }
});

test("presets hold the papers' numbers", () => {
  expect(PRESETS['paper-ppo']).toMatchObject({
    algorithm: 'ppo',
    optimizer: {
      learningRate: 1e-6,
      valueLearningRate: 1e-5,
      warmup: { share: 0.285 },
      valueWarmup: { share: 0.015 },
    },
    batchSequences: 512,
    miniBatchSequences: 256,
    steps: 500,
    checkpointEvery: 100,
  });
  expect(PRESETS['paper-grpo']).toMatchObject({ algorithm: 'grpo', samplesPerQuestion: 5 });
  expect(PRESETS['paper-ssrl']).toMatchObject({
    optimizer: { learningRate: 1e-6, warmup: { steps: 62 } },
    batchSequences: 256,
    samplesPerQuestion: 5,
    epochs: 5,
    validateEvery: 100,
  });
  expect(PRESETS['lora-small']).toMatchObject({
    lora: { rank: 16, alpha: 32, targets: 'all-linear' },
    optimizer: { learningRate: 5e-5, sftLearningRate: 3e-4 },
    batchSequences: 32,
    rollout: { actionBudget: 2, turnTokens: 128, observationTokens: 256, passageTokens: 80 },
  });
});
