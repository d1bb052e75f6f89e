// The loop trains the task that users have.

import { type Config, loadConfig } from '../../../src/config/index.js';
import { loopRunSettings } from '../../../src/loop/online/run-settings.js';
import { runSettings } from '../../../src/training/index.js';

const WINDOW = { maxSequenceTokens: 4096 };
const config = (flags: Readonly<Record<string, unknown>> = {}): Config => loadConfig({ env: {}, flags });
const sizesOf = ({ actionBudget, turnTokens, observationTokens, passageTokens }: Config['rollout']) => ({
  actionBudget,
  turnTokens,
  observationTokens,
  passageTokens,
});

test('sizes that training does not give are those of serving, with every preset', () => {
  for (const preset of ['lora-small', 'paper-ppo', 'paper-grpo', 'paper-ssrl'] as const)
    for (const rollout of [
      {},
      { 'rollout.passageTokens': 128, 'rollout.actionBudget': 3, 'rollout.turnTokens': 64 },
    ]) {
      const all = config({ 'training.preset': preset, ...rollout });
      const run = loopRunSettings(all, WINDOW);
      expect(run.rollout).toEqual(sizesOf(all.rollout));
      // No rollout that the engine can hold is too long to be learned from.
      expect(run.maxSequenceTokens).toBe(4096);
    }
  expect(loopRunSettings(config(), WINDOW).rollout).toEqual({
    actionBudget: 4,
    turnTokens: 500,
    observationTokens: 500,
    passageTokens: null,
  });
});

test('what training gives wins, each by itself', () => {
  const given = { actionBudget: 1, turnTokens: 16, observationTokens: 110, passageTokens: 32 };
  for (const [name, value] of Object.entries(given)) {
    const all = config({ [`training.${name}`]: value });
    const run = loopRunSettings(all, WINDOW);
    expect(run.rollout).toEqual({ ...sizesOf(all.rollout), [name]: value });
  }
  expect(loopRunSettings(config({ 'training.maxSequenceTokens': 700 }), WINDOW).maxSequenceTokens).toBe(700);
});

test('all else is as in a run of train: the preset and the algorithm of the loop', () => {
  const all = config({ 'loop.algorithm': 'dr-grpo' });
  const run = loopRunSettings(all, WINDOW);
  const offline = runSettings(all.training, 'dr-grpo');
  expect(run).toEqual({
    ...offline,
    rollout: sizesOf(all.rollout),
    maxSequenceTokens: 4096,
    // The longest response of these sizes: five turns of 500, and three of 128 before.
    objective: { ...offline.objective, tokenSumNorm: 2500 },
  });
  expect([offline.objective.tokenSumNorm, offline.maxSequenceTokens]).toEqual([3 * 128, 2048]);
  expect(loopRunSettings(all, { maxSequenceTokens: 640 }).objective.tokenSumNorm).toBe(640);
});
