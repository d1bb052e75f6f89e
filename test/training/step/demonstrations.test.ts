// A step that is shown right answers beside its rollouts.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TrainingSequence } from '../../../src/training/index.js';
import type { RolloutFacts } from '../../../src/training/step/sequences.js';
import { madeExamples } from '../support/examples.js';
import { madeRollouts, stepWork } from '../support/rollouts.js';
import { beginSession, controlOf, type SessionOptions, VOCAB } from '../support/session.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-shown-'));
afterAll(() => rmSync(folder, { recursive: true }));

const control = controlOf(64);
const rollouts = madeRollouts(3, 4, VOCAB, 'v0');
const shown: TrainingSequence[] = madeExamples(5, VOCAB, 9).map((example) => ({ ...example, rollout: null }));
const begin = (options: SessionOptions = {}) => beginSession(folder, options);
const withReward = (items: readonly TrainingSequence[], reward: (item: RolloutFacts) => number) =>
  items.map((item) => {
    const rollout = item.rollout as RolloutFacts;
    return { ...item, rollout: { ...rollout, reward: reward(rollout) } };
  });

test('where no rollout has a signal they alone are learned, and how far the policy has gone is told all the same', async () => {
  const { session, start } = await begin();
  const equal = withReward(rollouts, () => 1);
  const work = (step: number) =>
    stepWork('grpo', [...equal, ...shown], { step, reference: start.folder, miniBatchSequences: 4 });
  const first = await session.step(work(1), control);
  expect(first.state).not.toBe(start.state);
  expect(first.metrics).toMatchObject({
    ...{ rollouts: 12, trainedRollouts: 0, zeroVarianceShare: 1, reward: 1 },
    ...{ demonstrations: 5, updates: 1, kl: 0 },
  });
  expect(first.metrics.loss).toBeCloseTo(first.metrics.demonstrationLoss as number, 12);
  let last = first;
  for (let step = 2; step < 12; step++) last = await session.step(work(step), control);
  expect(last.metrics.demonstrationLogprob).toBeGreaterThan(first.metrics.demonstrationLogprob as number);
  expect(last.metrics.kl).toBeGreaterThan(0);
});

test('supervised training on the same sequences makes the same update', async () => {
  const [mixed, plain] = [await begin(), await begin()];
  const settings = { klPlace: 'none', focalGamma: 1 } as const;
  const equal = withReward(rollouts, () => 1);
  const a = await mixed.session.step(stepWork('grpo', [...equal, ...shown], { settings }), control);
  const b = await plain.session.step(stepWork('sft', shown, { settings }), control);
  expect(a.metrics.gradientNorm).toBe(b.metrics.gradientNorm);
  expect(a.state).toBe(b.state);
});

test('beside rollouts with a signal: each update takes a part, and the figures of rollouts are as without', async () => {
  const [alone, both] = [await begin(), await begin()];
  const settings = { klPlace: 'none' } as const;
  const without = await alone.session.step(stepWork('grpo', rollouts, { settings }), control);
  const one = await both.session.step(stepWork('grpo', [...rollouts, ...shown], { settings }), control);
  expect(without.metrics).not.toHaveProperty('demonstrations');
  expect(one.metrics).toMatchObject({ demonstrations: 5, updates: 1, trainedRollouts: 12 });
  for (const name of ['policyLoss', 'logprob', 'entropy', 'reward', 'validShare', 'sequenceTokens'])
    expect(one.metrics[name]).toBeCloseTo(without.metrics[name] as number, 9);
  expect(one.state).not.toBe(without.state);
  const three = stepWork('grpo', [...rollouts, ...shown], { step: 2, settings, miniBatchSequences: 4 });
  const parts = await both.session.step(three, control);
  expect(parts.metrics.updates).toBe(3);
});

test('with a critic: it learns nothing where only demonstrations are', async () => {
  const { session, start } = await begin({ critic: true });
  const none = rollouts.map((item) => ({ ...item, lossMask: item.lossMask.map(() => 0) }));
  const { metrics } = await session.step(
    stepWork('ppo', [...none, ...shown], { reference: start.folder, settings: { klBeta: 0 } }),
    control,
  );
  expect(metrics).toMatchObject({ updates: 1, demonstrations: 5 });
  expect(metrics).not.toHaveProperty('valueGradientNorm');
});

test('what a search brought within a demonstration is context alone', async () => {
  const [plain, other] = [await begin(), await begin()];
  const settings = { klPlace: 'none' } as const;
  const noisy = shown.map((item) => ({
    ...item,
    environmentMask: item.environmentMask.map((mask) => 1 - mask),
  }));
  const a = await plain.session.step(stepWork('grpo', [...rollouts, ...shown], { settings }), control);
  const b = await other.session.step(stepWork('grpo', [...rollouts, ...noisy], { settings }), control);
  expect(b.state).toBe(a.state);
});
