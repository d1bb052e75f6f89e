import { configSchema } from '../../../src/config/index.js';
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

test('lengths that algorithms need follow from the rollouts', () => {
  expect(runSettings(config({ actionBudget: 3, turnTokens: 100 }), 'dr-grpo').objective.tokenSumNorm).toBe(
    400,
  );
  const dapo = runSettings(config(), 'dapo');
  expect(dapo.dynamicSampling).toBe(true);
  expect(dapo.objective.overlong).toEqual({ maxTokens: 384, cacheTokens: 77 });
});

test('the rate rises over the warm-up and then stays', () => {
  const settings = runSettings(config({ learningRate: 1, warmupShare: 0.2, schedule: 'constant' }), 'grpo');
  const rates = [1, 2, 3, 10].map((step) => learningRates(settings, step, 10).policy);
  expect(rates).toEqual([0.5, 1, 1, 1]);
});
