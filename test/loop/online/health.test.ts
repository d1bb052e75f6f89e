// What the collapse guard is told of a step, by hand.

import type { Batch } from '../../../src/loop/online/batch.js';
import { healthOf, healthOfBatch, thinkRepetition } from '../../../src/loop/online/health.js';
import type { TrajectoryRecord } from '../../../src/trajectory/index.js';
import { tokenizer } from '../../trajectory/store/support.js';

/** Pieces of text, and whether the policy sampled them. */
function recordOf(pieces: readonly (readonly [text: string, isSampled: boolean])[]): TrajectoryRecord {
  const parts = pieces.map(([text, isSampled]) =>
    tokenizer.encodePlain(text).map((id) => [id, isSampled ? 1 : 0] as const),
  );
  const tokens = parts.flat();
  return {
    tokenIds: tokens.map(([id]) => id),
    lossMask: tokens.map(([, mask]) => mask),
    logprobs: tokens.map(() => 0),
  } as unknown as TrajectoryRecord;
}
const likely = (logprobs: number[], lossMask: (0 | 1)[]): TrajectoryRecord =>
  ({ tokenIds: logprobs.map(() => 5), logprobs, lossMask }) as unknown as TrajectoryRecord;

test('repetition is the share of 4-grams that stood in think blocks before, of what the policy wrote', () => {
  const repetition = (...pieces: [string, boolean][]) => thinkRepetition(recordOf(pieces), tokenizer);
  const twice = '<think>a b c d a b c d</think>';
  // abcd bcda cdab dabc abcd: one of five stood there before.
  expect(repetition([twice, true])).toBeCloseTo(0.2, 12);
  expect(repetition(['<think>a b c d', true])).toBe(0);
  expect(repetition(['<think>a a a a a a', true])).toBeCloseTo(2 / 3, 12);
  expect(repetition(['<think>a b c</think>', true])).toBe(0);
  // What was retrieved, and what it answers, is none of its thoughts.
  const found = '<think>x x x x x x x x</think>';
  expect(repetition([found, false], [twice, true], [found, false])).toBeCloseTo(0.2, 12);
  expect(repetition([twice, true], [' y y y y y y y y y', true])).toBeCloseTo(0.2, 12);
  // Over all blocks of a rollout.
  expect(repetition(['<think>a b c d</think>', true], ['<think>a b c d</think>', true])).toBeCloseTo(0.2, 12);
});

const rollout = (groupId: string, reward: number, isRight: boolean, record = likely([-9, -9], [0, 1])) => ({
  record,
  groupId,
  reward,
  isRight,
});

test('hopeless are groups of several in which all are equally wrong, and no others', () => {
  const shareOf = (...items: ReturnType<typeof rollout>[]) =>
    healthOf(items, {}, tokenizer).zeroVarianceShare;
  const wrong = [rollout('w', 0, false), rollout('w', 0, false)];
  const right = [rollout('r', 1, true), rollout('r', 1, true)];
  const mixed = [rollout('m', 0, false), rollout('m', 0.1, false)];
  const single = [rollout('s', 0, false)];
  expect(shareOf(...wrong)).toBe(1);
  expect(shareOf(...right)).toBe(0);
  expect(shareOf(...wrong, ...right, ...mixed, ...single)).toBeCloseTo(1 / 3, 12);
  expect(shareOf(...single)).toBeUndefined();
});

test('how likely right answers are: a mean over their sampled tokens', () => {
  const figures = healthOf(
    [
      rollout('a', 1, true, likely([-1, -50, -3], [1, 0, 1])),
      rollout('b', 1, true, likely([-0.5], [1])),
      rollout('c', 0, false, likely([-70, -70, -70], [1, 1, 1])),
    ],
    { entropy: 0.5, kl: 0.25, loss: 3 },
    tokenizer,
  );
  expect(figures).toEqual({
    entropy: 0.5,
    kl: 0.25,
    correctLogprob: -1.5,
    responseTokens: 2,
    thinkRepetition: 0,
  });
  // Nothing is known of right answers where there are none.
  expect(Object.keys(healthOf([rollout('c', 0, false)], {}, tokenizer)).sort()).toEqual([
    'responseTokens',
    'thinkRepetition',
  ]);
});

test('right is what matches exactly or is worth 1; the better one of a pair need not be', async () => {
  const items = (
    [
      ['exact', 0.9, 1, false],
      ['worth 1', 1, 0, false],
      ['worth less', 0.9, 0, false],
      ['better', 1, 1, true],
    ] as const
  ).map(([name, reward, em, isCompared], i) => ({
    record: { ...likely([-(2 ** i)], [1]), id: name, groupId: null },
    scores: { reward, em },
    isCompared,
  }));
  const { correctLogprob } = await healthOfBatch({ rollouts: items } as unknown as Batch, {}, tokenizer);
  expect(correctLogprob).toBe(-1.5);
});
