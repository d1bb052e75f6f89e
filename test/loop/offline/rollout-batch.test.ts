// Rollouts of a step whose outcomes are scripted.

import { loadConfig } from '../../../src/config/index.js';
import type { Question } from '../../../src/evaluation/index.js';
import { batchFigures, sampleBatch, trainingSequence } from '../../../src/loop/offline/rollout-batch.js';
import { rlSteps } from '../../../src/loop/offline/train-rl.js';
import { type AlgorithmName, RunningBaselines, runSettings } from '../../../src/training/index.js';
import { createTrajectoryBuilder } from '../../../src/trajectory/index.js';
import { makeRecord, tokenizer } from '../../trajectory/store/support.js';

const questions: Question[] = Array.from({ length: 40 }, (_, i) => ({
  id: `q${i}`,
  dataset: 'made',
  question: `Question ${i}?`,
  goldenAnswers: ['x'],
  supportingTitles: [],
}));

const settingsOf = (algorithm: AlgorithmName, training: Readonly<Record<string, unknown>>) =>
  runSettings(
    loadConfig({
      env: {},
      flags: Object.fromEntries(Object.entries(training).map(([key, value]) => [`training.${key}`, value])),
    }).training,
    algorithm,
  );

/** @param em  of a rollout: of the n-th group that is sampled, and the number of the sample in it */
async function sample(
  algorithm: AlgorithmName,
  em: (group: number, sample: number) => 0 | 1,
  isSound: (id: string) => boolean = () => true,
  more: {
    readonly maxRejectedShare?: number;
    readonly questions?: readonly Question[];
    readonly rewardOf?: (group: number, sample: number) => number;
  } = {},
) {
  const groups: string[] = [];
  return sampleBatch(
    {
      settings: settingsOf(algorithm, {
        batchSequences: 8,
        groupSize: 2,
        maxRejectedShare: more.maxRejectedShare ?? 0.5,
      }),
      questions: more.questions ?? questions,
      roll: async (jobs) => jobs.map(({ id, groupId }) => ({ ...makeRecord(id), groupId })),
      faultOf: ({ id }) => (isSound(id) ? null : 'mask: all 0'),
      score(record) {
        const groupId = record.groupId as string;
        if (!groups.includes(groupId)) groups.push(groupId);
        const [group, sample] = [groups.indexOf(groupId), Number(record.id.at(-1))];
        const score = em(group, sample);
        const { length } = record.searches;
        return {
          reward: more.rewardOf?.(group, sample) ?? score,
          em: score,
          subEm: 0,
          f1: 0,
          formatScore: 0,
          wellFormed: true,
          searches: length,
        };
      },
    },
    1,
  );
}

test('dapo: figures are of all that was sampled, not of what is kept of it', async () => {
  // Of the first four groups two are always wrong; it takes three rounds to find two others that differ.
  const wrong = [1, 3, 5, 6];
  const sampled = await sample('dapo', (group, n) => (n === 1 && !wrong.includes(group) ? 1 : 0));
  expect(sampled.batch).toHaveLength(8);
  const figures = batchFigures(sampled);
  expect(figures).toMatchObject({ zeroVarianceShare: 0.5, reward: 0.25, exactMatch: 0.25, searches: 1 });
  expect(figures.rollouts).toBe(16);
  const kept = new Set(sampled.batch.map(({ record }) => record.groupId));
  for (const groupId of kept) {
    const members = sampled.batch.filter(({ record }) => record.groupId === groupId);
    expect(members.map(({ scores }) => scores.em).sort()).toEqual([0, 1]);
  }
});

test('dapo: a group counts as equal by its rewards, whatever it matches', async () => {
  const [right, wrong] = [() => 1 as const, () => 0 as const];
  const apart = await sample('dapo', right, undefined, { rewardOf: (_, n) => 1 - 0.2 * n });
  expect(apart).toMatchObject({ equalShare: 0, sampled: { length: 8 }, batch: { length: 8 } });
  const equal = await sample('dapo', (_, n) => (n === 1 ? 1 : 0), undefined, { rewardOf: () => 0.5 });
  expect(equal).toMatchObject({ equalShare: 1, sampled: { length: 32 } });
  const shaped = await sample('dapo', wrong, undefined, {
    rewardOf: (group, n) => (group < 4 ? 0.2 * n : 0),
  });
  expect(shaped.equalShare).toBe(0);
});

test('records that are not sound are counted and take no part', async () => {
  const sampled = await sample(
    'grpo',
    (_, n) => (n === 1 ? 1 : 0),
    (id) => !id.endsWith('n1'),
  );
  expect(sampled).toMatchObject({ quarantined: 4, equalShare: null });
  expect(sampled.batch.every(({ record }) => record.id.endsWith('n0'))).toBe(true);
  expect(batchFigures(sampled)).toMatchObject({ rollouts: 4, quarantined: 4, reward: 0 });
  const none = await sample(
    'dapo',
    (_, n) => (n === 1 ? 1 : 0),
    () => false,
    { maxRejectedShare: 1 },
  );
  // All four rounds were tried; without a rollout there is no mean.
  expect(batchFigures(none)).toEqual({ rollouts: 0, quarantined: 32 });
});

test.each(['grpo', 'dapo'] as const)(
  '%s: a step most of whose records are not sound is none',
  async (name) => {
    const most = sample(
      name,
      () => 0,
      (id) => id === 's1q0n0' || id === 's1q1n0' || id === 's1q2n0',
    );
    await expect(most).rejects.toThrow(
      /^5 of the 8 rollouts .*is 0.5: .*s1q0n1: mask: all 0; s1q1n1: .*; s1q2n1: .*; and 2 more\)/,
    );
  },
);

test('records that are not sound are counted over all rounds of a step', async () => {
  // Nothing differs in the first round; of the two that follow nothing is sound.
  const later = sample(
    'dapo',
    () => 0,
    (id) => !id.startsWith('s1r'),
  );
  await expect(later).rejects.toThrow(/^16 of the 24 rollouts/);
});

test('the same question twice in a step is two groups', async () => {
  const { sampled } = await sample('grpo', () => 0, undefined, { questions: questions.slice(0, 2) });
  const groups = new Map<string | null, string[]>();
  for (const { record, question } of sampled)
    groups.set(record.groupId, [...(groups.get(record.groupId) ?? []), question.id]);
  expect([...groups.values()].map(({ length }) => length)).toEqual([2, 2, 2, 2]);
  expect([...groups.values()].map((ids) => new Set(ids).size)).toEqual([1, 1, 1, 1]);
});

test('steps of a run ask every question in each pass, though a step holds whole groups only', () => {
  for (const [batchSequences, groupSize, epochs, count] of [
    [32, 5, 1, 1000],
    [32, 5, 3, 1000],
    [8, 8, 2, 7],
    [9, 2, 1, 5],
  ] as const) {
    const steps = rlSteps(settingsOf('grpo', { batchSequences, groupSize, epochs }), count);
    const asked = Math.floor(batchSequences / groupSize);
    expect(steps * asked).toBeGreaterThanOrEqual(epochs * count);
    expect((steps - 1) * asked).toBeLessThan(epochs * count);
  }
});

test('of what the environment wrote, only what a search brought counts as retrieved', () => {
  const builder = createTrajectoryBuilder({ tokenizer, adapterVersion: 'v' });
  const say = (text: string): void => {
    const ids = tokenizer.encodePlain(text);
    builder.sampled({ ids, logprobs: ids.map(() => -1), samplingLogprobs: ids.map(() => -1) });
  };
  builder.prompt(tokenizer.encodePlain('question'));
  say('<search>x</search>');
  const found = builder.environment('search', tokenizer.encodePlain('<information>Doc</information>'));
  say('oops');
  const told = builder.environment('corrective', tokenizer.encodePlain('That was not understood.'));
  say('<answer>x</answer>');
  const made = makeRecord('r');
  const record = builder.build({ ...made, groupId: 'g' });
  const scores = {
    reward: 1,
    em: 1,
    subEm: 1,
    f1: 1,
    formatScore: 1,
    wellFormed: true,
    searches: 1,
  } as const;
  const rollout = { record, scores, question: questions[0] as Question };
  const { environmentMask, lossMask } = trainingSequence(
    rollout,
    { version: 'v', staleness: 0 },
    new RunningBaselines(),
  );
  expect([...environmentMask.subarray(...found)].every((mask) => mask === 1)).toBe(true);
  expect([...environmentMask.subarray(...told)].every((mask) => mask === 0)).toBe(true);
  expect(environmentMask.some((mask, t) => mask === 1 && lossMask[t] === 1)).toBe(false);
});
