import { configSchema } from '../../../src/config/index.js';
import { algorithmNames, algorithmOf } from '../../../src/training/algorithms/registry.js';
import { learningRates, runSettings } from '../../../src/training/index.js';

const config = (training: Record<string, unknown> = {}) => configSchema.parse({ training }).training;

test('lora-small is the default, for rollouts and for given trajectories', () => {
  const grpo = runSettings(config(), 'grpo');
  expect(grpo).toMatchObject({
    trained: 'lora',
    rank: 16,
    alpha: 32,
    batchSequences: 32,
    groupSize: 4,
    supervised: false,
    policySchedule: { peak: 5e-5 },
    rollout: { actionBudget: 2, turnTokens: 128, observationTokens: 256, passageTokens: 80 },
  });
  expect(grpo.objective).toMatchObject({ advantage: 'grpo', klPlace: 'loss', klBeta: 0.001, overlong: null });
  const sft = runSettings(config(), 'sft');
  expect(sft).toMatchObject({
    supervised: true,
    groupSize: 1,
    epochs: 1,
    steps: null,
    policySchedule: { peak: 3e-4 },
  });
});

test('what is given wins over the preset, the preset over the algorithm', () => {
  const given = runSettings(
    config({
      preset: 'paper-ppo',
      learningRate: 1e-3,
      klBeta: 0.5,
      batchSequences: 6,
      trained: 'lora',
      targetKl: 0.1,
    }),
    'ppo',
  );
  expect(given).toMatchObject({
    usesCritic: true,
    batchSequences: 6,
    miniBatchSequences: 6,
    steps: 500,
    rank: 16,
  });
  expect(given.policySchedule.peak).toBe(1e-3);
  expect(given.objective).toMatchObject({ klBeta: 0.5, targetKl: 0.1, advantage: 'gae', klPlace: 'reward' });
  expect(runSettings(config({ preset: 'paper-ppo' }), 'ppo').trained).toBe('whole');
});

test('weight decay goes by what is trained, unless it is given', () => {
  const decay = (training: Record<string, unknown>) => runSettings(config(training), 'grpo').weightDecay;
  expect(decay({})).toBe(0);
  expect(decay({ trained: 'whole' })).toBe(0.01);
  expect(decay({ preset: 'paper-grpo' })).toBe(0.01);
  expect(decay({ preset: 'paper-grpo', trained: 'lora' })).toBe(0);
  expect(decay({ trained: 'whole', weightDecay: 0.2 })).toBe(0.2);
});

const OBJECTIVE = {
  aggregation: 'token-mean',
  tokenSumNorm: 77,
  klPlace: 'reward',
  klEstimator: 'k2',
  klBeta: 0.02,
  clipEpsilonLow: 0.1,
  clipEpsilonHigh: 0.3,
  dualClip: 3,
  cispoMax: 4,
  klCovShare: 0.01,
  klCovCoefficient: 2,
  clipCovShare: 0.02,
  clipCovLow: 0.5,
  clipCovHigh: 6,
  gamma: 0.99,
  gaeLambda: 0.95,
  valueClip: 0.5,
  groupOfOne: 'reward',
  equalGroups: 'keep',
  importanceCap: 3,
  targetKl: 0.01,
  lldsWeight: 0.1,
  echoWeight: 0.05,
  entropyBonus: 0.001,
  maxStaleness: 2,
} as const;

test('every option of advantages and loss is reached from the configuration', () => {
  const given = { ...OBJECTIVE, overlongTokens: 100, overlongCacheTokens: 30 };
  for (const algorithm of algorithmNames().filter((name) => name !== 'sft'))
    expect(runSettings(config(given), algorithm).objective).toMatchObject({
      ...OBJECTIVE,
      overlong: { maxTokens: 100, cacheTokens: 30 },
    });
  // What concerns rewards and policies does not touch given trajectories.
  expect(runSettings(config(given), 'sft').objective).toMatchObject({
    klPlace: 'none',
    lldsWeight: 0,
    echoWeight: 0,
    overlong: null,
    aggregation: 'token-mean',
    tokenSumNorm: 77,
  });
  // No option of the objective is left out: these are decided by the algorithm's name.
  const { objective } = runSettings(config(), 'grpo');
  expect(Object.keys(objective).filter((key) => !Object.hasOwn(OBJECTIVE, key))).toEqual([
    'advantage',
    'policyLoss',
    'focalGamma',
    'overlong',
  ]);
});

test('the estimator goes with the place of the KL', () => {
  const estimator = (training: Record<string, unknown>, algorithm: 'ppo' | 'dapo') =>
    runSettings(config(training), algorithm).objective.klEstimator;
  expect(estimator({}, 'ppo')).toBe('k1');
  expect(estimator({ klPlace: 'loss' }, 'ppo')).toBe('k3');
  expect(estimator({ klPlace: 'reward' }, 'dapo')).toBe('k1');
  expect(estimator({ klPlace: 'loss', klEstimator: 'k1' }, 'ppo')).toBe('k1');
});

test.each([
  [{ klBeta: 0.1 }, 'dapo', /training.klBeta 0.1: dapo charges no KL here/],
  [{ klTarget: 0.1 }, 'dapo', /training.klTarget 0.1: dapo charges no KL/],
  [{ klPlace: 'none', klEstimator: 'k2' }, 'grpo', /training.klEstimator k2: grpo charges no KL/],
  [{ klTarget: 0.1, klBeta: 0 }, 'grpo', /klBeta begins at 0/],
  [{ batchEpochs: 2 }, 'reinforce', /training.batchEpochs 2: reinforce has no ratio/],
  [{ miniBatchSequences: 16 }, 'reinforce', /training.miniBatchSequences 16: reinforce has no ratio/],
  [{ groupSize: 8, batchSequences: 4 }, 'grpo', /holds no whole group/],
  [{ validateEvery: 5 }, 'sft', /training.validateEvery 5: sft rolls nothing out/],
  [{ overlongTokens: 10, overlongCacheTokens: 20 }, 'grpo', /expected at most overlongTokens, which is 10/],
  [{ clipCovLow: 7 }, 'clip-cov', /expected below clipCovHigh, which is 5/],
] as const)('%j with %s is refused', (training, algorithm, message) => {
  expect(() => runSettings(config(training), algorithm)).toThrow(message);
});

test('reinforce makes one update a step, whatever the preset; a step holds at least one group', () => {
  const { miniBatchSequences } = runSettings(config({ preset: 'paper-grpo' }), 'reinforce');
  expect(miniBatchSequences).toBe(512);
  expect(runSettings(config({ batchSequences: 3 }), 'grpo').groupSize).toBe(3);
  expect(runSettings(config({ preset: 'paper-ssrl' }), 'grpo').validateEvery).toBe(100);
  expect(runSettings(config({ preset: 'paper-ssrl' }), 'sft').validateEvery).toBe(0);
});

test('the loop may use every algorithm that learns from rewards', () => {
  const rewarded = algorithmNames().filter((name) => !algorithmOf(name).supervised);
  for (const algorithm of rewarded)
    expect(configSchema.parse({ loop: { algorithm } }).loop.algorithm).toBe(algorithm);
  expect(() => configSchema.parse({ loop: { algorithm: 'sft' } })).toThrow();
});

test('lengths that algorithms need follow from the rollouts', () => {
  expect(runSettings(config({ actionBudget: 3, turnTokens: 100 }), 'dr-grpo').objective.tokenSumNorm).toBe(
    400,
  );
  const dapo = runSettings(config(), 'dapo');
  expect(dapo.dynamicSampling).toBe(true);
  expect(dapo.objective.overlong).toEqual({ maxTokens: 384, cacheTokens: 77 });
  expect(runSettings(config({ overlongTokens: 0 }), 'dapo').objective.overlong).toBeNull();
  expect(runSettings(config({ overlongCacheTokens: 50 }), 'grpo').objective.overlong).toEqual({
    maxTokens: 384,
    cacheTokens: 50,
  });
  // No response is longer than its sequence.
  expect(runSettings(config({ preset: 'paper-ssrl' }), 'dr-grpo').objective.tokenSumNorm).toBe(4096);
});

test('the rate rises over the warm-up and then stays', () => {
  const settings = runSettings(config({ learningRate: 1, warmupShare: 0.2, schedule: 'constant' }), 'grpo');
  const rates = [1, 2, 3, 10].map((step) => learningRates(settings, step, 10).policy);
  expect(rates).toEqual([0.5, 1, 1, 1]);
});
