// What never teaches, over a real store: neither by a new rollout of its question, nor as it was given, nor in a pair. And
// whose word alone never judges.

import { Findings } from '../../../src/loop/online/findings.js';
import { isHeldOut, questionKey } from '../../../src/loop/online/gate/questions.js';
import type { LoopHouse } from '../../../src/loop/online/house.js';
import { LabelIndex } from '../../../src/loop/online/labels.js';
import { loggedAnswers, usablePairs } from '../../../src/loop/online/logged-answers.js';
import { factsOf } from '../../../src/loop/online/status.js';
import type { RecordNotes, TrajectoryRecord, TrajectoryStore } from '../../../src/trajectory/index.js';
import { feedback, MODEL, makeRecord, notes, useStore } from '../../trajectory/store/support.js';

let store: TrajectoryStore;
useStore('may-teach', (opened) => {
  store = opened;
});

const QUESTIONS = Array.from({ length: 60 }, (_, i) => `question ${i}?`);
const TAUGHT = QUESTIONS.filter((question) => !isHeldOut(questionKey(question)));
const [HELD_OUT = ''] = QUESTIONS.filter((question) => isHeldOut(questionKey(question)));

/** Explored, unless it says otherwise. */
async function answered(
  id: string,
  question: string,
  { source = 'explore' as RecordNotes['source'], ...changes }: Partial<TrajectoryRecord & RecordNotes> = {},
): Promise<void> {
  const record = { ...makeRecord(id, { question }), sampling: { temperature: 1 }, ...changes };
  await store.put(record, notes({ source, messages: [{ role: 'user', content: question }] }));
}

const house = {
  engine: { info: { modelDigest: MODEL, maxSequenceTokens: 4096 } },
  settings: { keyShare: 1 },
  run: { maxSequenceTokens: 4096, objective: { advantage: 'grpo' } },
  canJudge: true,
} as unknown as LoopHouse;

/** Ids of what may be rolled out again, of what may be learned from as it was given, and of pairs. */
async function teaches({ reserved = [] as string[], withUnlabelled = false } = {}) {
  const labels = new LabelIndex(store, { reserved: new Set(reserved.map(questionKey)), withUnlabelled });
  await labels.refresh();
  const known = new Findings(async () => new Set()).under('v');
  const { usable, unusable } = loggedAnswers(house, labels, known);
  const ids = (answers: Iterable<{ head: { id: string } }>) => [...answers].map(({ head }) => head.id).sort();
  return {
    replayed: ids(labels.toReplay().values()),
    logged: ids(usable),
    unusable,
    pairs: usablePairs(house, labels, known).map(({ better, worse }) => `${better.head.id}-${worse.head.id}`),
    judging: labels.toJudge().length,
  };
}

const broken = { lossMask: makeRecord('x').lossMask.map(() => 1 as const) };
const REASONS: [string, Partial<TrajectoryRecord & RecordNotes>, string][] = [
  ['a model without search', { method: 'chat' }, 'other method'],
  ['a rollout of our own', { source: 'train' }, 'not explored (temperature 0 or cut sampling)'],
  ['quarantined', broken, 'failed the audit'],
];

test.each(REASONS)('%s: not taught, though its gold answers are known', async (_what, changes, reason) => {
  const [first = '', second = ''] = TAUGHT;
  await answered('good', first);
  await answered('bad', second, changes);
  for (const id of ['good', 'bad']) await store.addFeedback(feedback(id, { goldAnswers: ['Paris'] }));
  const { replayed, logged, unusable } = await teaches();
  expect([replayed, logged, unusable]).toEqual([['good'], ['good'], { [reason]: 1 }]);
});

test('a question that the gate asks teaches nobody, whoever else asks it and whatever is said of the answers', async () => {
  const [reserved = '', other = ''] = TAUGHT;
  for (const [question, name] of [
    [reserved, 'gate'],
    [HELD_OUT, 'held'],
    [other, 'free'],
  ] as const) {
    for (const at of [1, 2, 3, 4]) await answered(`${name}${at}`, question);
    await store.addFeedback(feedback(`${name}1`, { goldAnswers: ['Paris'] }));
    await store.addFeedback(feedback(`${name}2`, { preferredOver: `${name}3` }));
  }
  expect(await teaches()).toMatchObject({
    replayed: ['free1', 'gate1'],
    logged: ['free1', 'gate1'],
    pairs: ['gate2-gate3', 'free2-free3'],
  });
  // The case and the mark at its end are none of a question.
  const asked = [`${reserved.toUpperCase().slice(0, -1)}  ?`];
  expect(await teaches({ reserved: asked })).toEqual({
    replayed: ['free1'],
    logged: ['free1'],
    unusable: { 'held out': 2 },
    pairs: ['free2-free3'],
    judging: 0,
  });
  // Where a judge tells what an answer is worth, those that nobody labelled are held to the same.
  const { replayed, logged } = await teaches({ reserved: asked, withUnlabelled: true });
  expect(replayed).toEqual(['free1']);
  expect(logged).toEqual(['free1', 'free2', 'free3', 'free4']);
});

test('who asks and says the answer in one is no admin: alone they teach, and do not judge', async () => {
  await answered('a', HELD_OUT);
  await answered('b', TAUGHT[0] as string);
  const say = (id: string, keyId: string) =>
    store.addFeedback(feedback(id, { keyId, role: 'request', goldAnswers: ['Paris'] }));
  for (const id of ['a', 'b']) await say(id, 'asker');
  expect(await teaches()).toMatchObject({ replayed: ['b'], judging: 0 });
  await say('a', 'other');
  expect(await teaches()).toMatchObject({ judging: 1 });
});

test('what an admin calls right in a chat, or says is right there, is nothing to judge by', async () => {
  const [heldOut = '', other = ''] = QUESTIONS.filter((question) => isHeldOut(questionKey(question)));
  await answered('rated', heldOut, { method: 'chat' });
  await answered('corrected', other, { method: 'chat' });
  const say = (id: string, said: object) =>
    store.addFeedback(feedback(id, { keyId: 'boss', role: 'admin', ...said }));
  await say('rated', { rating: 1 });
  await say('corrected', { goldAnswers: ['Paris'] });
  expect((await teaches()).judging).toBe(0);
  await answered('searched', heldOut);
  await say('searched', { rating: 1 });
  expect((await teaches()).judging).toBe(1);
});

test('a question to judge by counts once, be it configured twice and labelled by users too', async () => {
  await answered('a', HELD_OUT);
  await store.addFeedback(feedback('a', { goldAnswers: ['Paris'], role: 'admin' }));
  const labels = new LabelIndex(store, { reserved: new Set(), withUnlabelled: false });
  await labels.refresh();
  const gateQuestions = [HELD_OUT, 'another?', 'Another?'].map((question, i) => ({
    id: `${i}`,
    dataset: 'made',
    question,
    goldenAnswers: ['Paris'],
    supportingTitles: [],
  }));
  const asking = { ...house, gate: { questions: 1 }, gateQuestions, priority: {} } as unknown as LoopHouse;
  const facts = factsOf(asking, labels, new Findings(async () => new Set()).under('v'));
  expect([labels.toJudge().length, facts.judging]).toEqual([1, 2]);
});
