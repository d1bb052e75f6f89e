import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Question } from '../../../src/evaluation/index.js';
import { readWarmStart, sampleBest } from '../../../src/loop/index.js';
import type { LockStepRollouts, RolloutJob } from '../../../src/loop/offline/lock-step-rollouts.js';
import { makeRecord, tokenizer } from '../../trajectory/store/support.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'best-of-n-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test('two at once sample each question once', async () => {
  const asked: string[] = [];
  const roll = async (jobs: readonly RolloutJob[]) =>
    jobs.map(({ id, groupId }) => {
      asked.push(id);
      return { ...makeRecord(id), groupId };
    });
  const question = (id: string): Question => ({
    id,
    dataset: 'one',
    question: 'capital of France?',
    goldenAnswers: ['Paris'],
    supportingTitles: [],
  });
  const output = join(folder, 'best.jsonl');
  const sample = () =>
    sampleBest({
      questions: ['a', 'b'].map(question),
      rollouts: { roll, askable: async (asked: readonly Question[]) => asked } as unknown as LockStepRollouts,
      tokenizer,
      score: () => ({ reward: 1 }) as never,
      samples: 2,
      minReward: 1,
      seed: 1,
      output,
      settingsDigest: 'd',
    });
  const both = await Promise.all([sample(), sample()]);
  expect(both).toEqual([1, 2].map(() => ({ questions: 2, trajectories: 2 })));
  expect(asked).toHaveLength(4);
  expect((await readWarmStart(output)).map(({ questionId }) => questionId)).toEqual(['a', 'b']);
});
