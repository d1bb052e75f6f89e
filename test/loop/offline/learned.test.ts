import { learnedSoFar } from '../../../src/loop/offline/learned.js';
import { algorithmSettings } from '../../../src/training/algorithms/index.js';

const settings = {
  objective: algorithmSettings('grpo', { klBeta: 0.01 }),
  klTarget: 0.1,
  klHorizon: 100,
};

test('the weight of the KL follows its target, and a run that goes on has the last one', () => {
  const first = learnedSoFar(settings);
  expect(first.klBeta).toBe(0.01);
  first.follow(1, 50);
  expect(first.klBeta).toBeCloseTo(0.01 * (1 + (0.2 * 50) / 100), 12);
  first.baselines.update('who', 1);
  const again = learnedSoFar(settings, JSON.parse(JSON.stringify(first.carried())));
  expect(again.klBeta).toBe(first.klBeta);
  expect(again.baselines.valueOf('who')).toBe(first.baselines.valueOf('who'));
});

test('without a target it is what the configuration says, whatever was carried; a target needs a weight', () => {
  const fixed = learnedSoFar({ ...settings, klTarget: null }, { klBeta: 0.5 });
  fixed.follow(1, 50);
  expect(fixed.klBeta).toBe(0.01);
  const none = { ...settings, objective: { ...settings.objective, klBeta: 0 } };
  expect(() => learnedSoFar(none)).toThrow('beta must be positive');
});
