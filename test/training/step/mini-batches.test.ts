// Which rollouts an update takes, against which policy they are weighed, and at whose rate each model moves.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StepWork, TrainingSequence } from '../../../src/training/index.js';
import type { RolloutFacts } from '../../../src/training/step/sequences.js';
import { relativeDifference } from '../model/support/oracle.js';
import { madeRollouts, stepWork } from '../support/rollouts.js';
import { beginSession, controlOf, VOCAB } from '../support/session.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-batches-'));
afterAll(() => rmSync(folder, { recursive: true }));

const control = controlOf(64);
const rollouts = madeRollouts(3, 4, VOCAB, 'v0');
const rate = (learningRate: number) => ({ learningRate, weightDecay: 0, maxGradientNorm: 1 });
const noKl = { klPlace: 'none' } as const;

const withFacts = (
  sequence: TrainingSequence,
  facts: Partial<RolloutFacts>,
  more: Partial<TrainingSequence> = {},
): TrainingSequence => ({
  ...sequence,
  rollout: { ...(sequence.rollout as RolloutFacts), ...facts },
  ...more,
});

/** A group that is skipped, and a rollout in which nothing was sampled. */
const unlearned = [
  withFacts(rollouts[0] as TrainingSequence, { groupId: 'silent' }, { lossMask: new Uint8Array(200) }),
  ...rollouts.slice(4, 8).map((item) => withFacts(item, { groupId: 'equal', reward: 1 })),
].map((item, i) => ({
  ...item,
  id: `unlearned-${i}`,
  lossMask: item.lossMask.slice(0, item.tokenIds.length),
}));

test.each([
  [17, 1],
  [4, 3],
])('rollouts without a signal change no update of %i sequences', async (miniBatchSequences, updates) => {
  const step = async (sequences: readonly TrainingSequence[]) => {
    const { session, start } = await beginSession(folder);
    const settings = { klBeta: 0.1 };
    const work = stepWork('grpo', sequences, { reference: start.folder, miniBatchSequences, settings });
    // A second step: the policy is no longer the reference.
    await session.step(work, control);
    return session.step({ ...work, step: 2 }, control);
  };
  const mixed = await step([...unlearned, ...rollouts]);
  expect(mixed.state).toBe((await step(rollouts)).state);
  expect(mixed.metrics).toMatchObject({ rollouts: 17, trainedRollouts: 12, updates });
});

test('the updates of one pass after the first weigh against the policy that sampled', async () => {
  const { session } = await beginSession(folder);
  const work = stepWork('grpo', rollouts, { miniBatchSequences: 4, policy: rate(0.5), settings: noKl });
  const { metrics } = await session.step(work, control);
  expect(metrics.updates).toBe(3);
  expect(metrics.approxKl).toBeGreaterThan(0);
});

test('where the policy has moved far enough, no further pass begins either', async () => {
  const { session } = await beginSession(folder);
  const more = { batchEpochs: 6, miniBatchSequences: 6, settings: { ...noKl, targetKl: 1e-9 } };
  const { metrics } = await session.step(stepWork('grpo', rollouts, more), control);
  // The first one sees the policy that sampled.
  expect(metrics.updates).toBe(2);
});

test('policy and critic move at their own rates', async () => {
  const moved = async (rates: Pick<StepWork, 'policy' | 'value'>) => {
    const { session, start, valuesOf } = await beginSession(folder, { critic: true });
    const before = [valuesOf('policy'), valuesOf('critic')];
    await session.step(stepWork('ppo', rollouts, { reference: start.folder, ...rates }), control);
    return [valuesOf('policy'), valuesOf('critic')].map((values, i) =>
      relativeDifference(values, before[i]!),
    );
  };
  expect(await moved({ policy: rate(0.05), value: rate(0) })).toEqual([expect.any(Number), 0]);
  expect(await moved({ policy: rate(0), value: rate(0.05) })).toEqual([0, expect.any(Number)]);
  const [policy, critic] = await moved({ policy: rate(0.05), value: rate(0.05) });
  expect(policy).toBeGreaterThan(0.01);
  expect(critic).toBeGreaterThan(0.01);
});

test('how a batch is split into micro-batches does not change the outcome', async () => {
  const outcomes: Float32Array[][] = [];
  for (const microBatchTokens of [16, 40, 4096]) {
    const { session, start, valuesOf } = await beginSession(folder, { critic: true });
    const work = stepWork('ppo', rollouts, { reference: start.folder, microBatchTokens });
    const { metrics } = await session.step(work, controlOf(microBatchTokens));
    const figures = ['gradientNorm', 'valueGradientNorm', 'loss'].map((name) => metrics[name] as number);
    outcomes.push([valuesOf('policy'), valuesOf('critic'), Float32Array.from(figures)]);
  }
  for (const outcome of outcomes.slice(1))
    for (const [i, values] of outcome.entries())
      expect(relativeDifference(values, outcomes[0]?.[i] as Float32Array)).toBeLessThan(1e-5);
});

describe('rollouts of earlier versions', () => {
  const aged = (of: (i: number) => Partial<RolloutFacts>) =>
    rollouts.map((item, i) => withFacts(item, of(i)));

  /** A session that has moved a step away from what `start` holds. */
  async function moved() {
    const begun = await beginSession(folder);
    await begun.session.step(stepWork('grpo', rollouts, { settings: noKl }), control);
    return begun;
  }

  test('are dropped beyond the limit, and at the limit they are not', async () => {
    const { session, start } = await moved();
    const work = stepWork(
      'grpo',
      aged((i) => ({ version: 'old', staleness: i < 8 ? 4 : 5 })),
      { step: 2, versions: { old: start.folder }, settings: noKl },
    );
    const { metrics } = await session.step(work, control);
    expect(metrics).toMatchObject({ rollouts: 8, staleRollouts: 4, trainedRollouts: 8, updates: 1 });
  });

  test('are each weighed against their own', async () => {
    const states: string[] = [];
    const kls: number[] = [];
    for (const names of [
      ['a', 'a'],
      ['a', 'b'],
      ['a', 'v0'],
    ]) {
      const { session, start } = await moved();
      const work = stepWork(
        'grpo',
        aged((i) => ({ version: names[i % 2] as string, staleness: 1 })),
        { step: 2, versions: { a: start.folder, b: start.folder }, settings: noKl },
      );
      const { state, metrics } = await session.step(work, control);
      states.push(state);
      kls.push(metrics.approxKl as number);
    }
    expect(states[1]).toBe(states[0]);
    // Half of them are of the policy that is trained: nothing lies between.
    expect(kls[2]).toBeGreaterThan(0);
    expect(kls[2]).toBeLessThan(0.8 * (kls[0] as number));
  });
});
