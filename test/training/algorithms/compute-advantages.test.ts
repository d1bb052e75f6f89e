// From rollouts to advantages: which are kept, what is charged, and what cannot matter.

import fc from 'fast-check';
import {
  type AlgorithmSettings,
  algorithmSettings,
  computeAdvantages,
  type RolloutData,
  summariseMetrics,
} from '../../../src/training/algorithms/index.js';
import { algorithmNames } from '../../../src/training/algorithms/registry.js';

const rollout = (
  groupId: string,
  reward: number,
  lossMask = [0, 1, 1, 0, 1],
  more: Partial<RolloutData> = {},
) => ({
  groupId,
  reward,
  lossMask,
  ...more,
});

const advantagesOf = (rollouts: readonly RolloutData[], settings: AlgorithmSettings): number[][] =>
  computeAdvantages(rollouts, settings).advantages.map((row) => [...row]);

const grpo = algorithmSettings('grpo');

test('one number for all sampled tokens of a rollout, 0 elsewhere', () => {
  const [a, b] = advantagesOf([rollout('q', 1), rollout('q', 0)], grpo) as [number[], number[]];
  const size = 0.5 / (Math.SQRT1_2 + 1e-6);
  expect(a).toEqual([0, size, size, 0, size].map((value) => expect.closeTo(value, 12)));
  expect(b).toEqual(a.map((value) => (value === 0 ? 0 : -value)));
});

test('groups of equal rewards are left out, or kept without an advantage', () => {
  const rollouts = [rollout('a', 1), rollout('b', 1), rollout('a', 1), rollout('b', 0), rollout('c', 0.3)];
  const skip = computeAdvantages(rollouts, grpo);
  expect(skip.keep).toEqual([false, true, false, true, true]);
  expect(summariseMetrics(skip.metrics)['zeroVarianceShare']).toBe(0.5);
  expect(skip.returns).toBeNull();
  for (const advantage of ['grpo', 'group-mean', 'rloo'] as const) {
    const kept = computeAdvantages(rollouts, { ...grpo, advantage, equalGroups: 'keep' });
    expect(kept.keep).toEqual([true, true, true, true, true]);
    expect([...kept.advantages[0]!, ...kept.advantages[2]!].every((value) => value === 0)).toBe(true);
  }
  const [left] = advantagesOf(rollouts, { ...grpo, advantage: 'reinforce++-baseline' });
  expect(left!.every((value) => value === 0)).toBe(true);
});

test('a group of one: the reward less its baseline, or the reward itself', () => {
  const lone = [rollout('x', 0.9, [0, 1], { baseline: 0.4 })];
  expect(advantagesOf(lone, grpo)).toEqual([[0, 0.5]]);
  expect(advantagesOf(lone, { ...grpo, groupOfOne: 'reward' })).toEqual([[0, 0.9]]);
  expect(advantagesOf([rollout('x', 0.9, [0, 1])], grpo)).toEqual([[0, 0.9]]);
});

test('the over-long penalty counts sampled tokens only', () => {
  const settings = algorithmSettings('dapo', {
    advantage: 'group-mean',
    overlong: { maxTokens: 4, cacheTokens: 2 },
  });
  const rollouts = [rollout('q', 1, [0, 1, 1, 1, 0, 0, 0, 0]), rollout('q', 1, [0, 1, 1, 0, 0, 0, 0, 0])];
  const { advantages, metrics } = computeAdvantages(rollouts, settings);
  expect(advantages.map((row) => row[1])).toEqual([-0.25, 0.25]);
  expect(summariseMetrics(metrics)).toMatchObject({ reward: 1, overlongPenalty: -0.25, sampledTokens: 2.5 });
});

test('KL in the reward is charged on sampled tokens, also of group advantages', () => {
  const settings = algorithmSettings('grpo', {
    advantage: 'group-mean',
    klPlace: 'reward',
    klEstimator: 'k1',
    klBeta: 0.1,
  });
  const logprobs = (old: number, ref: number): Partial<RolloutData> => ({
    logprobsOld: [Number.NaN, old, old],
    logprobsRef: [Number.NaN, ref, ref],
  });
  const rollouts = [
    rollout('q', 1, [0, 1, 1], logprobs(-1, -2)),
    rollout('q', 0, [0, 1, 1], logprobs(-1, -1)),
  ];
  const { advantages, metrics } = computeAdvantages(rollouts, settings);
  expect(advantages[0]![2]).toBeCloseTo((1 - 0.2) / 2, 12);
  expect(summariseMetrics(metrics)['klCharge']).toBeCloseTo(0.1, 12);
  const bare = [rollout('q', 1, [0, 1, 1])];
  expect(() => computeAdvantages(bare, settings)).toThrow('KL in the reward needs logprobsOld, got none');
});

test('ppo whitens and gives the critic its targets', () => {
  const settings = algorithmSettings('ppo', { klPlace: 'none', gamma: 0.5, gaeLambda: 0.5 });
  const rollouts = [
    rollout('q', 1, [0, 1, 0, 1], { valuesOld: [9, 0.2, 9, 0.4] }),
    rollout('q', 1, [0, 1, 0, 1], { valuesOld: [9, 0.2, 9, 0.6] }),
  ];
  const { advantages, returns, keep } = computeAdvantages(rollouts, settings);
  expect(keep).toEqual([true, true]);
  expect(returns!.map((row) => [...row])).toEqual([
    [0, expect.closeTo(0.2 + (0.5 * 0.4 - 0.2) + 0.25 * 0.6, 12), 0, 1],
    [0, expect.closeTo(0.2 + (0.5 * 0.6 - 0.2) + 0.25 * 0.4, 12), 0, 1],
  ]);
  const all = advantages.flatMap((row) => [row[1]!, row[3]!]);
  expect(all.reduce((a, b) => a + b, 0)).toBeCloseTo(0, 10);
  expect(all.reduce((a, b) => a + b * b, 0) / 3).toBeCloseTo(1, 5);
  expect(() => computeAdvantages([rollout('q', 1)], settings)).toThrow('gae needs valuesOld, got none');
});

const drawn = fc.record({
  groupId: fc.constantFrom('a', 'b', 'c'),
  reward: fc.constantFrom(0, 0.1, 0.9, 1),
  mask: fc.array(fc.constantFrom(0, 1), { minLength: 1, maxLength: 8 }),
});
const online = algorithmNames().filter((name) => name !== 'sft');

/** Per-token arrays of a rollout; `hidden` stands under the mask. */
const full = (
  { groupId, reward, mask }: { groupId: string; reward: number; mask: number[] },
  hidden: number,
) => {
  const tokens = (of: (t: number) => number): number[] => mask.map((m, t) => (m === 1 ? of(t) : hidden));
  return rollout(groupId, reward, mask, {
    logprobsOld: tokens((t) => -1 - t / 7),
    logprobsRef: tokens((t) => -1.5 + t / 9),
    valuesOld: tokens((t) => t / 5),
  });
};

test.each(online)('%s: what stands under the mask changes no bit', (name) => {
  fc.assert(
    fc.property(
      fc.array(drawn, { minLength: 1, maxLength: 8 }),
      fc.constantFrom(Number.NaN, 1e9, -3),
      (rows, hidden) => {
        const settings = algorithmSettings(name, { klBeta: 0.1, gaeLambda: 0.8 });
        const [a, b] = [0, hidden].map((value) =>
          computeAdvantages(
            rows.map((row) => full(row, value)),
            settings,
          ),
        );
        expect(b).toEqual(a);
      },
    ),
    { numRuns: 40 },
  );
});

test.each(online)('%s: a rollout without sampled tokens changes nothing, wherever it stands', (name) => {
  fc.assert(
    fc.property(fc.array(drawn, { minLength: 1, maxLength: 6 }), fc.nat(6), drawn, (rows, at, extra) => {
      const settings = algorithmSettings(name, { klBeta: 0.1 });
      const empty = full({ ...extra, mask: extra.mask.map(() => 0) }, Number.NaN);
      const rollouts = rows.map((row) => full(row, 0));
      const more = rollouts.toSpliced(at, 0, empty);
      const [alone, together] = [rollouts, more].map((list) => computeAdvantages(list, settings));
      const place = Math.min(at, rows.length);
      expect(together!.keep[place]).toBe(false);
      expect(together!.advantages.toSpliced(place, 1)).toEqual(alone!.advantages);
      expect(together!.returns?.toSpliced(place, 1) ?? null).toEqual(alone!.returns);
      expect(together!.metrics).toEqual(alone!.metrics);
    }),
    { numRuns: 40 },
  );
});

test('a reward that is not finite is refused', () => {
  expect(() => computeAdvantages([rollout('q', Number.NaN)], grpo)).toThrow('reward: not finite (NaN)');
});
