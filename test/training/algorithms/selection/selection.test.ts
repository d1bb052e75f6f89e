// Which rollouts are worth training on: distance, dynamic sampling, best of n.

import { bestOfN, policyDistance, selectGroups } from '../../../../src/training/algorithms/index.js';

test('distance of a logged rollout reads sampled tokens only', () => {
  const then = [Number.NaN, -1, Number.NaN, -2];
  const now = [Number.NaN, -1, Number.NaN, -2.8];
  const mask = [0, 1, 0, 1];
  const { kl, farShare } = policyDistance(then, now, mask);
  expect(kl).toBeCloseTo((Math.exp(0.8) - 0.8 - 1) / 2, 12);
  expect(farShare).toBe(0.5);
  expect(policyDistance(then, now, mask, 3).farShare).toBe(0);
  expect(policyDistance(then, now, [0, 0, 0, 0])).toEqual({ kl: 0, farShare: 0 });
});

test('dynamic sampling keeps whole groups that differ, up to the batch, and says how many are missing', () => {
  const groups = ['a', 'b', 'a', 'c', 'b', 'c', 'd', 'd'];
  const rewards = [1, 0, 0, 1, 0, 1, 0.1, 1];
  const rollouts = groups.map((groupId, i) => ({ groupId, reward: rewards[i]! }));
  expect(selectGroups(rollouts, 3)).toEqual({
    kept: [0, 2, 6, 7],
    equalGroups: 2,
    missingGroups: 1,
  });
  expect(selectGroups(rollouts, 1)).toEqual({
    kept: [0, 2],
    equalGroups: 2,
    missingGroups: 0,
  });
  expect(selectGroups([], 2)).toEqual({ kept: [], equalGroups: 0, missingGroups: 2 });
});

test('best of n: the best that is good enough, the shorter of equals, never one without sampled tokens', () => {
  const candidates = [
    { groupId: 'a', reward: 0.9, sampledTokens: 5 },
    { groupId: 'a', reward: 1, sampledTokens: 9 },
    { groupId: 'b', reward: 0.4, sampledTokens: 2 },
    { groupId: 'a', reward: 1, sampledTokens: 7 },
    { groupId: 'a', reward: 1, sampledTokens: 7 },
    { groupId: 'c', reward: 1, sampledTokens: 0 },
  ];
  expect(bestOfN(candidates, { minReward: 0.5 })).toEqual([3]);
  expect(bestOfN(candidates, { minReward: 0 })).toEqual([2, 3]);
  expect(bestOfN(candidates, { minReward: 0.5, perGroup: 3 })).toEqual([1, 3, 4]);
});
