// Of labelled answers memory holds the newest; the store has the others, and what is said anew brings them back.

import { isHeldOut, questionKey } from '../../../src/loop/online/gate/questions.js';
import { LabelIndex } from '../../../src/loop/online/labels.js';
import type { TrajectoryStore } from '../../../src/trajectory/index.js';
import { feedback, makeRecord, notes, useStore } from '../../trajectory/store/support.js';

let store: TrajectoryStore;
useStore('held-answers', (opened) => {
  store = opened;
});

const questions = Array.from({ length: 400 }, (_, i) => `question ${i}`);
const taught = questions.filter((question) => !isHeldOut(questionKey(question)));
const held = questions.filter((question) => isHeldOut(questionKey(question)));

async function labelled(id: string, question: string): Promise<void> {
  await store.put(makeRecord(id, { question }), notes({ messages: [{ role: 'user', content: question }] }));
  await store.addFeedback(feedback(id, { goldAnswers: ['x'], role: 'admin' }));
}

const idsOf = (labels: LabelIndex): string[] => labels.answers().map(({ head }) => head.id);

test('the oldest labelled answers leave memory, those that judge apart from those that teach; nothing counts as deleted', async () => {
  for (let i = 0; i < 6; i++) await labelled(`t${i}`, taught[i] as string);
  for (let i = 0; i < 3; i++) await labelled(`h${i}`, held[i] as string);
  // Room for four that teach and two that judge.
  const bounds = { teaching: 4 * 1600, judging: 2 * 1600 };
  const labels = new LabelIndex(store, { reserved: new Set(), withUnlabelled: false, bounds });
  const news = await labels.refresh();
  expect(idsOf(labels)).toEqual(['t2', 't3', 't4', 't5', 'h1', 'h2']);
  expect(news.map(({ head }) => head.id)).toEqual(idsOf(labels));
  expect(labels.toJudge()).toHaveLength(2);
  expect(labels.toReplay().size).toBe(4);
  expect(labels.forgotten).toBe(0);
  // Sweeps bring none of them back.
  for (let i = 0; i < 3; i++) await labels.sweep();
  expect(idsOf(labels)).toEqual(['t2', 't3', 't4', 't5', 'h1', 'h2']);
  await store.addFeedback(feedback('t0', { goldAnswers: ['y'], role: 'admin' }));
  expect((await labels.refresh()).map(({ head }) => head.id)).toEqual(['t0']);
  expect(idsOf(labels)).toEqual(['t3', 't4', 't5', 'h1', 'h2', 't0']);
  await store.delete({ ids: ['t3'] });
  await labels.sweep();
  expect([idsOf(labels).includes('t3'), labels.forgotten]).toEqual([false, 1]);
});
