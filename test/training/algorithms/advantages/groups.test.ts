// Advantages from groups against stored values, and the known faults of others.

import { groupMeanAdvantages } from '../../../../src/training/algorithms/advantages/group-mean.js';
import {
  advantagesByGroup,
  isEqualGroup,
  membersByGroup,
} from '../../../../src/training/algorithms/advantages/groups.js';
import { grpoAdvantages } from '../../../../src/training/algorithms/advantages/grpo.js';
import { rlooAdvantages } from '../../../../src/training/algorithms/advantages/rloo.js';
import { difference, readLosses } from '../support.js';

interface GroupCase {
  readonly case: string;
  readonly rewards: readonly number[];
  readonly groups: readonly string[];
  readonly ours: Record<'grpo' | 'grpoNoStd' | 'rloo', readonly number[]> & {
    readonly skipped: readonly string[];
  };
}

const estimators = { grpo: grpoAdvantages, grpoNoStd: groupMeanAdvantages, rloo: rlooAdvantages } as const;
const none = (rewards: readonly number[]): number[] => rewards.map(() => 0);

describe.each(readLosses<GroupCase>('groups'))('$case', (c) => {
  test.each(Object.entries(estimators))('%s', (name, estimator) => {
    const ours = advantagesByGroup(c.rewards, c.groups, none(c.rewards), estimator);
    expect(difference(ours, c.ours[name as 'grpo'])).toBeLessThan(1e-6);
  });

  test('groups without signal', () => {
    const equal = [...membersByGroup(c.groups)]
      .filter(([, members]) => isEqualGroup(members.map((i) => c.rewards[i]!)))
      .map(([group]) => group);
    expect(equal.sort()).toEqual(c.ours.skipped);
  });
});

test('a shuffled batch of two questions is judged question by question', () => {
  const rewards = [1, 1, 0, 0, 1, 0, 1, 0.5];
  const groups = ['b', 'a', 'b', 'a', 'a', 'b', 'b', 'a'];
  const advantages = advantagesByGroup(rewards, groups, none(rewards), grpoAdvantages);
  for (const group of ['a', 'b']) {
    const own = Array.from(advantages).filter((_, i) => groups[i] === group);
    expect(own.reduce((a, b) => a + b, 0)).toBeCloseTo(0, 12);
    expect(Math.max(...own)).toBeGreaterThan(0.5);
  }
});

test('normalised within the group, not over the batch', () => {
  const groups = ['A', 'A', 'A', 'A', 'B', 'B', 'B', 'B'];
  const advantages = advantagesByGroup(
    [1, 1, 1, 1, 0, 0, 0, 1],
    groups,
    none(groups.map(Number)),
    grpoAdvantages,
  );
  expect(Array.from(advantages.slice(0, 4))).toEqual([0, 0, 0, 0]);
  expect(advantages.slice(4).every((a) => a !== 0)).toBe(true);
});

test.each([
  ['equal in float32', new Array(8).fill(Math.fround(0.35))],
  ['equal but for rounding', [...new Array(7).fill(Math.fround(0.35)), 0.35]],
  ['one of eight', [...new Array(7).fill(0), 1]],
])('no advantage explodes: %s', (_, rewards) => {
  for (const estimator of Object.values(estimators)) {
    for (const advantage of estimator(rewards)) expect(Math.abs(advantage)).toBeLessThanOrEqual(10);
  }
});

test('a group of one has its reward less the baseline', () => {
  const advantages = advantagesByGroup([0.4, 1, 0], ['x', 'y', 'y'], [0.25, 9, 9], rlooAdvantages);
  expect(Array.from(advantages)).toEqual([expect.closeTo(0.15, 12), 1, -1]);
});
