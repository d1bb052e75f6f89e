import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { IntegrityError, InvalidInputError } from '../../../src/errors.js';
import { algorithmNames, algorithmOf } from '../../../src/training/algorithms/registry.js';
import type { RolloutFacts } from '../../../src/training/step/sequences.js';
import { TrainerSession } from '../../../src/training/trainer/session.js';
import { madeRollouts, stepWork } from '../support/rollouts.js';
import { beginSession, controlOf, type SessionOptions, VOCAB } from '../support/session.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-step-'));
afterAll(() => rmSync(folder, { recursive: true }));

const control = controlOf(64);
const rollouts = madeRollouts(3, 4, VOCAB, 'v0');
const begin = (options: SessionOptions = {}) => beginSession(folder, options);

test.each(algorithmNames().filter((name) => !algorithmOf(name).supervised))(
  '%s: a step changes the policy, and its figures are finite',
  async (name) => {
    const { session, start } = await begin({ critic: algorithmOf(name).usesCritic });
    const report = await session.step(stepWork(name, rollouts, { reference: start.folder }), control);
    expect(report.state).not.toBe(start.state);
    expect(Object.values(report.metrics).every(Number.isFinite)).toBe(true);
    expect(report.metrics).toMatchObject({ rollouts: 12, staleRollouts: 0, updates: 1, validShare: 24 / 30 });
  },
);

test('the gap between engine and trainer is told: its mean and its worst', async () => {
  const { session } = await begin();
  const settings = { klPlace: 'none' } as const;
  const { metrics } = await session.step(stepWork('grpo', rollouts, { settings, batchEpochs: 2 }), control);
  expect(metrics.engineGap).toBeGreaterThan(0);
  expect(metrics.engineGapMax).toBeGreaterThan(metrics.engineGap as number);
  const { session: silent } = await begin();
  const given = rollouts.map((item) => ({ ...item, rollout: { ...item.rollout, engineLogprobs: null } }));
  const without = await silent.step(stepWork('grpo', given as typeof rollouts, { settings }), control);
  expect(without.metrics).not.toHaveProperty('engineGap');
});

test('KL to the reference is 0 at the first step, and then grows', async () => {
  const { session, start } = await begin();
  const first = await session.step(stepWork('grpo', rollouts, { reference: start.folder }), control);
  expect(first.metrics.kl).toBe(0);
  const second = await session.step(
    stepWork('grpo', rollouts, { step: 2, reference: start.folder }),
    control,
  );
  expect(second.metrics.kl).toBeGreaterThan(0);
});

test('repeated steps raise the reward that they are given', async () => {
  const { session } = await begin();
  const chance = async () => {
    const { metrics } = await session.step(
      stepWork('reinforce', rollouts, { reference: null, settings: { klPlace: 'none' } }),
      control,
    );
    return metrics.policyLoss as number;
  };
  const before = await chance();
  for (let step = 0; step < 20; step++) await chance();
  expect(await chance()).toBeLessThan(before);
});

test('numbers at masked tokens and a rollout without sampled tokens change nothing', async () => {
  const plain = await begin();
  const noisy = await begin();
  const changed = rollouts.map((sequence) => {
    const facts = sequence.rollout as RolloutFacts;
    const engineLogprobs = (facts.engineLogprobs as Float32Array).map((value, t) =>
      sequence.lossMask[t] === 1 ? value : Number.NaN,
    );
    return { ...sequence, rollout: { ...facts, engineLogprobs } };
  });
  const silent = { ...changed[0], id: 'silent', lossMask: changed[0]?.lossMask.map(() => 0) };
  const a = await plain.session.step(stepWork('grpo', rollouts, { reference: plain.start.folder }), control);
  const b = await noisy.session.step(
    stepWork('grpo', [...changed, silent as (typeof changed)[number]], { reference: noisy.start.folder }),
    control,
  );
  expect(b.state).toBe(a.state);
  expect(b.metrics.loss).toBe(a.metrics.loss);
});

test('groups of equal rewards carry no signal: no update, same policy', async () => {
  const { session, start } = await begin();
  const equal = rollouts.map((item) => ({ ...item, rollout: { ...item.rollout, reward: 1 } }));
  const report = await session.step(
    stepWork('grpo', equal as typeof rollouts, { reference: start.folder }),
    control,
  );
  expect(report.state).toBe(start.state);
  expect(report.metrics).toMatchObject({ updates: 0, trainedRollouts: 0, zeroVarianceShare: 1, reward: 1 });
  expect(report.metrics).toMatchObject({ kl: 0, klK1: 0, entropy: expect.any(Number) });
});

test('a step without a signal tells how far the policy has gone, as a step with one does', async () => {
  const { session, start } = await begin();
  const reference = start.folder;
  const eight = rollouts.slice(0, 8) as typeof rollouts;
  await session.step(stepWork('grpo', rollouts, { reference }), control);
  const equal = eight.map((item) => ({
    ...item,
    rollout: { ...item.rollout, reward: 0 },
  })) as typeof rollouts;
  const without = await session.step(stepWork('grpo', equal, { step: 2, reference }), control);
  const { metrics } = await session.step(stepWork('grpo', eight, { step: 3, reference }), control);
  expect(without.metrics.updates).toBe(0);
  expect(metrics).toMatchObject({ updates: 1, trainedRollouts: 8 });
  expect(without.metrics.kl).toBeGreaterThan(0);
  for (const name of ['kl', 'klK1', 'entropy'])
    expect(without.metrics[name]).toBeCloseTo(metrics[name] as number, 6);
});

test('rollouts of an earlier version are weighed against that version; too old ones are dropped', async () => {
  const { session, start, root } = await begin();
  await session.step(stepWork('grpo', rollouts, { settings: { klPlace: 'none' } }), control);
  await session.commit(root, '0'.repeat(64));
  const aged = (staleness: number) =>
    rollouts.map((item) => ({
      ...item,
      rollout: { ...item.rollout, version: 'old', staleness },
    })) as typeof rollouts;
  const work = (staleness: number) =>
    stepWork('grpo', aged(staleness), {
      step: 2,
      versions: { old: start.folder },
      settings: { klPlace: 'none' },
    });
  const { metrics } = await session.step(work(1), control);
  expect(metrics.approxKl).toBeGreaterThan(0);
  expect((await session.step(work(5), control)).metrics).toMatchObject({ staleRollouts: 12, updates: 0 });
  const unknown = stepWork('grpo', aged(1), { settings: { klPlace: 'none' } });
  await expect(session.step(unknown, control)).rejects.toThrow(IntegrityError);
});

test('further passes over a batch end when the policy has moved far enough', async () => {
  const passes = async (targetKl: number | null) => {
    const { session } = await begin();
    const work = stepWork('grpo', rollouts, {
      batchEpochs: 6,
      miniBatchSequences: 6,
      settings: { klPlace: 'none', targetKl },
    });
    return (await session.step(work, control)).metrics;
  };
  expect((await passes(null)).updates).toBe(12);
  const stopped = await passes(0.001);
  expect(stopped.updates).toBeLessThan(12);
  expect(stopped.updates).toBeGreaterThan(1);
});

test('a given trajectory among rollouts is refused where it has no weight', async () => {
  const { session } = await begin();
  const mixed = [{ ...rollouts[0], rollout: null }] as unknown as typeof rollouts;
  const work = stepWork('grpo', mixed, { demonstrationWeight: 0 });
  await expect(session.step(work, control)).rejects.toThrow(/is no rollout/);
  await expect(session.step(stepWork('ppo', rollouts), control)).rejects.toThrow(InvalidInputError);
});

test('a session goes on from its checkpoint, critic and moments included, to the bit', async () => {
  const { session, start, root, open } = await begin({ critic: true });
  const work = (step: number) => stepWork('ppo', rollouts, { step, reference: start.folder });
  await session.step(work(1), control);
  const checkpoint = await session.commit(root, '0'.repeat(64), { note: [1, { two: 2 }] });
  const later = await session.step(work(2), control);
  const resumed = await TrainerSession.resume(open, null, checkpoint.folder);
  expect(resumed.standsAt.state).toBe(checkpoint.state);
  expect((await resumed.step(work(2), control)).state).toBe(later.state);
});
