// Which of the trainer's versions a rollout is of, how old that makes it, and what the trainer is then told.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../../src/config/index.js';
import type { ScoredRollout } from '../../../src/loop/offline/rollout-batch.js';
import { samplerOf, trainerVersions } from '../../../src/loop/offline/sampling-version.js';
import { stepWork } from '../../../src/loop/offline/step-work.js';
import { commitCheckpoint } from '../../../src/training/checkpoint/store.js';
import { RunningBaselines, runSettings } from '../../../src/training/index.js';
import { writeFileAtomic } from '../../../src/util/atomic-file.js';
import { makeRecord } from '../../trajectory/store/support.js';

const root = mkdtempSync(join(tmpdir(), 'searchloop-versions-'));
afterAll(() => rmSync(root, { recursive: true }));

async function commit(step: number, version: string) {
  const { folder } = await commitCheckpoint(root, step, async (aside) => {
    await writeFileAtomic(join(aside, 'values'), version);
    return { version, parent: null, configDigest: 'c'.repeat(64) };
  });
  return { folder, step, version, state: version };
}

/** Steps 0 and 2 to 5 are there, the trainer is at 4; step 3 left everything as it was. */
async function trainer() {
  const folders: Record<number, string> = {};
  for (const [step, version] of [
    [0, 'v0'],
    [2, 'v2'],
    [3, 'v2'],
    [5, 'given up'],
  ] as const)
    folders[step] = (await commit(step, version)).folder;
  return { folders, step: 4, committed: await commit(4, 'v4') };
}

const of = (...versions: string[]) => ({
  versions: versions.map((adapterVersion, i) => ({ start: i, end: i + 1, adapterVersion })),
});

test('a version is as old as there were commits since; one without a checkpoint is too old for any limit', async () => {
  const versions = await trainerVersions(await trainer());
  expect(samplerOf(of('v4'), versions)).toEqual({ version: 'v4', staleness: 0 });
  expect(samplerOf(of('v2'), versions)).toEqual({ version: 'v2', staleness: 1 });
  expect(samplerOf(of('v0'), versions)).toEqual({ version: 'v0', staleness: 4 });
  for (const unknown of ['v1', 'given up', 'base'])
    expect(samplerOf(of(unknown), versions)).toEqual({
      version: unknown,
      staleness: Number.POSITIVE_INFINITY,
    });
});

test('the oldest token decides', async () => {
  const versions = await trainerVersions(await trainer());
  expect(samplerOf(of('v4', 'v0', 'v2'), versions)).toEqual({ version: 'v0', staleness: 4 });
  expect(samplerOf(of('v2', 'v1'), versions).staleness).toBe(Number.POSITIVE_INFINITY);
});

const settings = runSettings(
  loadConfig({
    env: {},
    flags: {
      'training.learningRate': 0.1,
      'training.valueLearningRate': 0.5,
      'training.warmupShare': 0.5,
      'training.valueWarmupShare': 0,
    },
  }).training,
  'ppo',
);

const rollout = (id: string, version: string, more: Partial<ScoredRollout> = {}): ScoredRollout => ({
  question: { id, dataset: 'made', question: `${id}?`, goldenAnswers: [], supportingTitles: [] },
  record: { ...makeRecord(id, { version }), groupId: id },
  scores: { reward: 1, em: 1, subEm: 1, f1: 1, formatScore: 1, wellFormed: true, searches: 1 },
  ...more,
});

async function workOf(batch: readonly ScoredRollout[], baselines = new RunningBaselines()) {
  const { folders, ...given } = await trainer();
  const versions = await trainerVersions(given);
  const rest = { baselines, klBeta: 0.25, steps: 20, seed: 7, reference: null };
  return { folders, work: stepWork({ settings, trainer: given, versions, batch, ...rest }) };
}

test('each rollout goes to the trainer with its own version and age, a logged answer as one of the present', async () => {
  const batch = [
    rollout('a', 'v4'),
    rollout('b', 'v2'),
    rollout('c', 'elsewhere'),
    rollout('d', 'elsewhere', { isLogged: true }),
  ];
  const { folders, work } = await workOf(batch);
  expect(work).toMatchObject({ step: 5, version: 'v4', seed: 7, algorithm: { klBeta: 0.25 } });
  expect(work.sequences.map(({ id, rollout: facts }) => [id, facts?.version, facts?.staleness])).toEqual([
    ['a', 'v4', 0],
    ['b', 'v2', 1],
    ['c', 'elsewhere', Number.POSITIVE_INFINITY],
    ['d', 'v4', 0],
  ]);
  expect(work.versions).toMatchObject({ v0: folders[0], v2: folders[3] });
});

test('policy and critic have rates of their own', async () => {
  const { work } = await workOf([rollout('a', 'v4')]);
  // The fifth of ten steps of warm-up; the critic has none.
  expect(work.policy.learningRate).toBeCloseTo(0.05, 12);
  expect(work.value.learningRate).toBe(0.5);
});

test('a rollout brings what was to be expected of questions like its own', async () => {
  const baselines = new RunningBaselines();
  baselines.update('made', 0.8);
  baselines.update('other', 0.1);
  const { work } = await workOf([rollout('a', 'v4')], baselines);
  expect(work.sequences[0]?.rollout).toMatchObject({ groupId: 'a', reward: 1, baseline: 0.8 });
});
