// What a step is made of where answers are learned from as they were given: over a real store and records, with an engine
// that gives every token the log-probability which it was sampled with.

import { RAW_POLICY } from '../../../src/engine/index.js';
import { Attempt } from '../../../src/loop/online/attempt.js';
import { type Batch, givenIds, makeBatch } from '../../../src/loop/online/batch.js';
import { Findings } from '../../../src/loop/online/findings.js';
import { isHeldOut, questionKey } from '../../../src/loop/online/gate/questions.js';
import type { LoopHouse } from '../../../src/loop/online/house.js';
import { LabelIndex } from '../../../src/loop/online/labels.js';
import { loggedAnswers, usablePairs } from '../../../src/loop/online/logged-answers.js';
import { createGrader } from '../../../src/loop/online/rewards.js';
import { TrainerKeeper } from '../../../src/loop/online/trainer-keeper.js';
import type { TrajectoryStore } from '../../../src/trajectory/index.js';
import { feedback, MODEL, makeRecord, notes, tokenizer, useStore } from '../../trajectory/store/support.js';

let store: TrajectoryStore;
useStore('batch', (opened) => {
  store = opened;
});

const QUESTIONS = Array.from({ length: 90 }, (_, i) => `question ${i}?`).filter(
  (question) => !isHeldOut(questionKey(question)),
);
const logprobOf = (id: number): number => -(1 + (id % 13)) / 10;

/** Explored as in mode `logged`; answers to questions of their own, unless one is given. @param far  nats a token from the present policy */
async function explored(ids: readonly string[], asked?: string, words = 0, far = 0): Promise<void> {
  await Promise.all(
    ids.map((id, i) => {
      const question = asked ?? (QUESTIONS[i % QUESTIONS.length] as string);
      const record = makeRecord(id, { question, words });
      const logprobs = record.tokenIds.map((token, at) =>
        record.lossMask[at] === 1 ? logprobOf(token) - far : 0,
      );
      return store.put(
        { ...record, logprobs, samplingLogprobs: logprobs, sampling: { ...RAW_POLICY, maxTokens: null } },
        notes({ source: 'explore', messages: [{ role: 'user', content: question }] }),
      );
    }),
  );
}

const sequence = {
  append: () => {},
  close: () => {},
  async *generate({ sampling }: { sampling: { logitBias: Record<number, number> } }) {
    const id = Number(Object.keys(sampling.logitBias)[0]);
    yield { token: { id, logprob: logprobOf(id), samplingLogprob: 0 }, text: '' };
  },
};

function houseOf(changes: { advantage?: string; mode?: string; maxSequenceTokens?: number } = {}): LoopHouse {
  const { advantage = 'grpo', mode = 'logged', maxSequenceTokens = 4096 } = changes;
  const generator = { open: async () => sequence };
  return {
    engine: { info: { modelDigest: MODEL, maxSequenceTokens: 4096 } },
    priority: { training: () => ({ generator, yielded: () => false }) },
    store,
    training: { tokenizer },
    settings: { mode, keyShare: 0.25 },
    run: {
      ...{ batchSequences: 16, groupSize: 4, maxSequenceTokens, maxRejectedShare: 0.5 },
      objective: { advantage },
    },
    grade: createGrader({
      tokenizer,
      settings: { rule: 'outcome', formatWeight: 0, searchCost: 0 },
      scorer: null,
      judge: null,
      majority: false,
    }),
    canJudge: false,
    onNote: () => {},
  } as unknown as LoopHouse;
}

afterEach(() => jest.restoreAllMocks());

const known = (most?: number) => new Findings(async () => new Set(), most).under('v1');

async function batchOf(house: LoopHouse, findings = known()): Promise<Batch> {
  const labels = new LabelIndex(store);
  await labels.refresh();
  return makeBatch({
    house,
    labels,
    plan: { step: 1, seed: 0, adapter: null, place: { pass: 0, cursor: '' } },
    known: findings,
    attempt: new Attempt(),
    signal: new AbortController().signal,
    onRollout: () => {},
  });
}

test('of answers as they were given no key labels more than its share of a step', async () => {
  const ids = Array.from({ length: 40 }, (_, i) => `id-${i}`);
  await explored(ids);
  for (const [i, id] of ids.entries())
    await store.addFeedback(feedback(id, { reward: i % 2, keyId: i < 30 ? 'a' : 'b' }));
  const { rollouts } = await batchOf(houseOf());
  const from = (keyId: string) =>
    rollouts.filter(({ origin }) => origin.sources.some((source) => source.keyId === keyId)).length;
  expect([from('a'), from('b')]).toEqual([4, 4]);
});

test('a labelled answer that is in a pair is not taken by itself too', async () => {
  await explored(['a', 'b'], QUESTIONS[0]);
  await store.addFeedback(feedback('a', { reward: 1, preferredOver: 'b' }));
  const batch = await batchOf(houseOf());
  expect(batch.rollouts.map(({ record, scores }) => [record.id, record.groupId, scores.reward])).toEqual([
    ['a', 'pair-a', 1],
    ['b', 'pair-a', 0],
  ]);
  expect(givenIds(batch)).toEqual(['a', 'b']);
});

test.each([
  ['grpo', 1],
  ['group-mean', 1],
  ['rloo', 1],
  ['reinforce++', 0],
  ['gae', 0],
])('pairs are learned from where groups are compared: %s, %i', async (advantage, pairs) => {
  await explored(['a', 'b'], QUESTIONS[0]);
  await store.addFeedback(feedback('a', { preferredOver: 'b' }));
  const labels = new LabelIndex(store);
  await labels.refresh();
  expect(usablePairs(houseOf({ advantage }), labels, known())).toHaveLength(pairs);
});

test('more pairs that are too far than findings are kept: a step ends, with those that are near', async () => {
  for (let i = 0; i < 6; i++) {
    await explored([`better-${i}`, `worse-${i}`], QUESTIONS[i], 0, 3);
    await store.addFeedback(feedback(`better-${i}`, { preferredOver: `worse-${i}`, keyId: `key-${i}` }));
  }
  await explored(['c', 'd'], QUESTIONS[6]);
  await store.addFeedback(feedback('c', { preferredOver: 'd', keyId: 'key-6' }));
  const { rollouts } = await batchOf(houseOf(), known(4));
  expect(rollouts.map(({ record }) => record.id)).toEqual(['c', 'd']);
});

test('of answers that cannot be used a step reads some, the next one others', async () => {
  const ids = Array.from({ length: 80 }, (_, i) => `id-${i}`);
  await explored(ids, undefined, 0, 3);
  for (const [i, id] of ids.entries())
    await store.addFeedback(feedback(id, { reward: 1, keyId: `key-${i % 8}` }));
  const findings = known();
  const read = jest.spyOn(store, 'read');
  const readIn = async (): Promise<number> => {
    const house = houseOf({ advantage: 'gae' });
    const labels = new LabelIndex(store);
    await labels.refresh();
    const before = read.mock.calls.length;
    const given = { labels, known: findings, attempt: new Attempt(), onRollout: () => {} };
    const plan = { step: 1, seed: 0, adapter: null, place: { pass: 0, cursor: '' } };
    await makeBatch({ ...given, house, plan, signal: new AbortController().signal });
    return read.mock.calls.length - before;
  };
  expect(await readIn()).toBe(64);
  expect(await readIn()).toBe(16);
  expect(await readIn()).toBe(0);
});

test('answers longer than the trainer takes are left out with a reason, unread', async () => {
  await explored(['short']);
  await explored(['long'], QUESTIONS[1], 200);
  for (const id of ['short', 'long']) await store.addFeedback(feedback(id, { reward: 1 }));
  const house = houseOf({ maxSequenceTokens: 200 });
  const labels = new LabelIndex(store);
  await labels.refresh();
  expect(loggedAnswers(house, labels, known())).toMatchObject({
    usable: [{ head: { id: 'short' } }],
    unusable: { 'too long': 1 },
  });
  expect((await batchOf(house)).rollouts.map(({ record }) => record.id)).toEqual(['short']);
});

test('a record that is not any more what was audited is not trained on', async () => {
  await explored(['sound', 'broken']);
  for (const id of ['sound', 'broken']) await store.addFeedback(feedback(id, { reward: 1 }));
  const { read } = store;
  jest.spyOn(store, 'read').mockImplementation(async (ids) =>
    (await read.call(store, ids)).map((stored) =>
      stored.head.id === 'broken'
        ? {
            ...stored,
            record: { ...stored.record, lossMask: stored.record.lossMask.map(() => 1 as const) },
          }
        : stored,
    ),
  );
  const findings = known();
  const { rollouts } = await batchOf(houseOf(), findings);
  expect(rollouts.map(({ record }) => record.id)).toEqual(['sound']);
  expect([findings.against('broken'), findings.against('sound')]).toEqual(['failed the audit', null]);
});

test('a record whose question alone was rolled out again is not one that was trained on, after a restart either', async () => {
  const receipt = { kind: 'loop-step', asGiven: ['pair'] };
  const heads = [
    { digest: 'new', parentDigest: 'old', receipt },
    { digest: 'old', parentDigest: 'base', receipt: null },
  ];
  const lineOf = jest.fn(async () => [{ trajectoryIds: ['from a version before'] }]);
  const fake = { adapterHeads: async () => heads, lineOf };
  const keeper = new TrainerKeeper({ store: fake } as unknown as LoopHouse);
  expect([...(await keeper.usedRecords())].sort()).toEqual(['from a version before', 'pair']);
  expect(lineOf.mock.calls).toEqual([['old', ['base']]]);
});
