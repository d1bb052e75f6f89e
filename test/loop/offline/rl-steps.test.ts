// What a run hands to its trainer, step by step: the real run, audit and checkpoints' folder; rollouts and trainer are scripted.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../../src/config/index.js';
import { IntegrityError } from '../../../src/errors.js';
import { openRun, type RlParts, trainRl } from '../../../src/loop/index.js';
import type { RolloutJob } from '../../../src/loop/offline/lock-step-rollouts.js';
import { readMetrics, runSettings, type StepWork, type Trainer } from '../../../src/training/index.js';
import type { TrajectoryRecord } from '../../../src/trajectory/index.js';
import { makeRecord, tokenizer } from '../../trajectory/store/support.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-steps-'));
afterAll(() => rmSync(folder, { recursive: true }));

let runs = 0;

interface Script {
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly rewardOf?: (step: number, sample: number) => number;
  /** What a rollout became: the n-th of a step. */
  readonly recordOf?: (record: TrajectoryRecord, step: number, n: number) => TrajectoryRecord;
  /** Exact matches on validation. */
  readonly validated?: (step: number) => number;
}

/** A run of three steps of two questions, two rollouts each, unless the flags say otherwise. */
async function play({
  flags = {},
  rewardOf = (_, sample) => sample,
  recordOf = (record) => record,
  validated,
}: Script) {
  const name = join(folder, `run-${runs++}`);
  const config = loadConfig({
    env: {},
    flags: {
      'training.batchSequences': 4,
      'training.groupSize': 2,
      'training.steps': 3,
      'training.klPlace': 'none',
      ...flags,
    },
  });
  const settings = runSettings(config.training, 'grpo');
  const run = await openRun(name, { identity: {}, resume: false });
  const works: StepWork[] = [];
  const notes: string[] = [];
  const stepOf = (id: string): number => Number(/^s(\d+)/.exec(id)?.[1]);
  const trainer = {
    step: 0,
    committed: { folder: join(run.checkpoints, 'step-0'), step: 0, version: 'v0', state: '' },
    carried: {},
    criticChange: null,
    run: async (work: StepWork) => {
      works.push(work);
      trainer.step = work.step;
      return { step: work.step, state: '', metrics: { staleRollouts: 0 }, tokens: 1, seconds: 1 };
    },
    commit: async () => {
      trainer.committed = { ...trainer.committed, step: trainer.step, version: `v${trainer.step}` };
      return trainer.committed;
    },
    close: async () => {},
  };
  const roll = async (jobs: readonly RolloutJob[]) =>
    jobs.map(({ id, groupId }, n) => {
      const record = { ...makeRecord(id, { version: trainer.committed.version }), groupId };
      return recordOf(record, stepOf(id), n);
    });
  const parts: RlParts = {
    settings,
    run,
    trainer: trainer as Trainer,
    tokenizer,
    reference: null,
    rollouts: {
      use: async () => {},
      askable: async (all: unknown) => all,
      roll,
    } as unknown as RlParts['rollouts'],
    questions: ['red', 'blue'].map((id) => ({
      id,
      dataset: 'colours',
      question: `${id}?`,
      goldenAnswers: [id],
      supportingTitles: [],
    })),
    ...(validated === undefined ? {} : { validate: async ({ step }) => ({ exactMatch: validated(step) }) }),
    score: ({ id, searches: { length } }) => {
      const reward = rewardOf(stepOf(id), Number(id.at(-1)));
      return { reward, em: 0, subEm: 0, f1: 0.5, formatScore: 0.25, wellFormed: true, searches: length };
    },
  };
  const validations: number[] = [];
  const onValidation = (_: unknown, step: number) => void validations.push(step);
  const failure: Error | null = await trainRl(parts, { onNote: (line) => notes.push(line), onValidation })
    .then(() => null)
    .catch((error: Error) => error)
    .finally(() => run.release());
  return { failure, name, validations, works, notes, rows: await readMetrics(run.metrics), trainer };
}

test('a group of one is compared with what earlier steps gave, not with itself', async () => {
  const flags = { 'training.groupSize': 1, 'training.batchSequences': 2 };
  const { failure, works } = await play({ flags, rewardOf: (step) => step });
  expect(failure).toBeNull();
  const facts = works.map(({ sequences }) => sequences.map(({ rollout }) => rollout));
  expect(facts.map((step) => step.map((rollout) => rollout?.reward))).toEqual([
    [1, 1],
    [2, 2],
    [3, 3],
  ]);
  expect(facts.map((step) => step.map((rollout) => rollout?.baseline))).toEqual([
    [0, 0],
    [1, 1],
    // 1 moved twice a tenth of the way to 2.
    [expect.closeTo(1.19, 12), expect.closeTo(1.19, 12)],
  ]);
});

test('the figures of a step are counts and means of its records', async () => {
  const silent = { recordOf: (r: TrajectoryRecord, _: number, n: number) => (n === 3 ? unanswered(r) : r) };
  const { rows } = await play(silent);
  const whole = makeRecord('a');
  const part = unanswered(whole);
  const mean = (of: (record: TrajectoryRecord) => number): number => (3 * of(whole) + of(part)) / 4;
  expect(rows[0]).toMatchObject({
    rollouts: 4,
    quarantined: 0,
    reward: 0.5,
    exactMatch: 0,
    f1: 0.5,
    formatScore: 0.25,
    answered: 0.75,
    turns: mean(({ turnStarts }) => turnStarts.length),
    searches: 1,
    sampledTokens: mean(({ lossMask }) => lossMask.filter((mask) => mask === 1).length),
    sequenceTokens: mean(({ tokenIds }) => tokenIds.length),
    validShare: 6 / 7,
  });
  expect(mean(({ turnStarts }) => turnStarts.length)).toBeLessThan(whole.turnStarts.length);
});

/** The rollout ended at its sequence's limit, after its search. */
function unanswered(record: TrajectoryRecord): TrajectoryRecord {
  const end = record.turnStarts[1] as number;
  const { tokenIds, origin, lossMask, logprobs, samplingLogprobs } = record;
  return {
    ...record,
    tokenIds: tokenIds.slice(0, end),
    origin: origin.slice(0, end),
    lossMask: lossMask.slice(0, end),
    logprobs: logprobs.slice(0, end),
    samplingLogprobs: samplingLogprobs.slice(0, end),
    versions: record.versions.map((span) => ({ ...span, end })),
    turnStarts: record.turnStarts.slice(0, 1),
    answer: null,
    stop: 'length',
    validActions: 0,
    invalidActions: 1,
  };
}

const emptyMask = (record: TrajectoryRecord): TrajectoryRecord => ({
  ...record,
  lossMask: record.lossMask.map(() => 0 as const),
});

describe('rollouts that fail the audit', () => {
  test('are left out of the step, up to a share', async () => {
    const { failure, works, rows, notes } = await play({ recordOf: (r, _, n) => (n < 2 ? emptyMask(r) : r) });
    expect(failure).toBeNull();
    expect(works.map(({ sequences }) => sequences.length)).toEqual([2, 2, 2]);
    expect(rows[0]).toMatchObject({ rollouts: 2, quarantined: 2 });
    expect(notes[0]).toMatch(/^rollout s1q0n0 is not trained on: \w+: /);
  });

  test('end the run beyond it; what was committed stays', async () => {
    const recordOf: Script['recordOf'] = (r, step, n) => (step === 2 && n > 0 ? emptyMask(r) : r);
    const { failure, works, rows, trainer } = await play({ recordOf });
    expect(failure).toBeInstanceOf(IntegrityError);
    expect(failure?.message).toMatch(
      /^3 of the 4 rollouts of a step failed the audit, and training.maxRejectedShare is 0.5.*s2q0n1: \w+: .*s2q1n1: .*--resume, from step 1$/,
    );
    expect(works).toHaveLength(1);
    expect(rows).toHaveLength(1);
    expect(trainer.committed.step).toBe(1);
    const lenient = await play({ recordOf, flags: { 'training.maxRejectedShare': 0.75 } });
    expect(lenient.failure).toBeNull();
    expect(lenient.works.map(({ sequences }) => sequences.length)).toEqual([4, 1, 4]);
  });
});

test('rollouts of another version than the one to be sampled from are told', async () => {
  const named = (record: TrajectoryRecord, version: string): TrajectoryRecord => ({
    ...record,
    versions: record.versions.map((span) => ({ ...span, adapterVersion: version })),
  });
  const { works, notes } = await play({
    recordOf: (r, step, n) => (step === 3 && n < 3 ? named(r, 'v1') : r),
  });
  expect(works[2]?.sequences.map(({ rollout }) => rollout?.version)).toEqual(['v1', 'v1', 'v1', 'v2']);
  // Its checkpoint is not there.
  expect(works[2]?.sequences.map(({ rollout }) => rollout?.staleness)).toEqual([
    ...Array(3).fill(Number.POSITIVE_INFINITY),
    0,
  ]);
  expect(notes).toEqual([
    'step 3: 3 of 4 rollouts are of version v1, though the engine was given v2; 0 are too old and left out',
  ]);
});

test.each([
  [2, [0, 2, 3]],
  [5, [0, 3]],
  [3, [0, 3]],
])('validation every %d steps judges the last of three steps too', async (validateEvery, judged) => {
  const flags = { 'training.validateEvery': validateEvery };
  const { validations, name } = await play({ flags, validated: (step) => (step === 3 ? 1 : 0) });
  expect(validations).toEqual(judged);
  expect(JSON.parse(readFileSync(join(name, 'best.json'), 'utf8'))).toEqual({ step: 3 });
});
