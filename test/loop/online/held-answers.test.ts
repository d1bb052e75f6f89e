// Of labelled answers memory holds the newest; the store has the others, and what is said anew brings them back.

import { isHeldOut, questionKey } from '../../../src/loop/online/gate/questions.js';
import { LabelIndex, type LabelStore } from '../../../src/loop/online/labels.js';
import type { StoredHead, TrajectoryStore } from '../../../src/trajectory/index.js';
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

test('of answers that were only compared the oldest leave memory with their pairs; what is said anew brings back all that was said', async () => {
  const names = [0, 1, 2].flatMap((i) => [`a${i}`, `b${i}`]);
  for (const id of names) await store.put(makeRecord(id), notes());
  const prefer = (better: string, worse: string, keyId: string, role: 'feedback' | 'admin' = 'feedback') =>
    store.addFeedback(feedback(better, { preferredOver: worse, keyId, role }));
  for (let i = 0; i < 3; i++) await prefer(`a${i}`, `b${i}`, 'one');
  await prefer('b0', 'a0', 'boss', 'admin');
  // Room for four.
  const bounds = { compared: 4 * 1600 };
  const labels = new LabelIndex(store, { reserved: new Set(), withUnlabelled: false, bounds });
  const pairs = () => labels.pairs().map(({ better, worse }) => `${better.head.id} before ${worse.head.id}`);
  await labels.refresh();
  expect(pairs()).toEqual(['a1 before b1', 'a2 before b2']);
  const read = jest.spyOn(store, 'list');
  for (let i = 0; i < 3; i++) await labels.sweep();
  expect(read.mock.calls.map(([{ ids }]) => ids)).toEqual(Array(3).fill(['a1', 'b1', 'a2', 'b2']));
  jest.restoreAllMocks();
  expect(labels.forgotten).toBe(0);
  await prefer('a0', 'b0', 'two');
  await labels.refresh();
  expect(pairs()).toEqual(['a2 before b2', 'b0 before a0']);
  // One of a pair is known for that alone.
  await store.delete({ ids: ['b0'] });
  await labels.refresh();
  const left = jest.spyOn(store, 'list');
  await labels.sweep();
  expect(left.mock.calls.map(([{ ids }]) => ids)).toEqual([['a2', 'b2']]);
  jest.restoreAllMocks();
});

test('answers of which nothing is known are held by their length too', async () => {
  for (let i = 0; i < 5; i++)
    await store.put(makeRecord(`u${i}`, { answer: 'x'.repeat(i === 4 ? 3000 : 10) }), notes());
  // Room for three short ones, or for one and the long one.
  const bounds = { unlabelled: 4 * 1600 };
  const labels = new LabelIndex(store, { reserved: new Set(), withUnlabelled: true, bounds });
  await labels.refresh();
  expect(labels.unlabelled().map(({ head }) => head.id)).toEqual(['u3', 'u4']);
  expect(labels.forgotten).toBe(0);
});

test('of very many answers that nobody labelled the newest are known, and no older one is read', async () => {
  const count = 50_000;
  const headAt = (sequence: number) =>
    ({ id: `id-${sequence}`, sequence, source: 'serve', method: 'search-r1', userKey: null }) as StoredHead;
  let held = 0;
  let texts = 0;
  const many: LabelStore = {
    feedbackSince: async () => [],
    lastWordsOf: async () => [],
    list: async ({ ids }, { cursor = 0, limit, order, skip = 0 }) => {
      if (ids !== undefined) return ids.map((id) => headAt(Number(id.slice(3))));
      if (order === 'newest') return [headAt(count - skip)];
      const left = Math.min(limit, count - cursor);
      return Array.from({ length: left }, (_, i) => headAt(cursor + 1 + i));
    },
    texts: async (ids) => {
      texts += ids.length;
      held = Math.max(held, labels.unlabelled().length + ids.length);
      return ids.map((id) => ({ id, question: id, answer: 'x', messages: [] }));
    },
  };
  const labels = new LabelIndex(many, { reserved: new Set(), withUnlabelled: true });
  await labels.refresh();
  const known = labels.unlabelled();
  expect([known.length, known[0]?.head.id, known.at(-1)?.head.id]).toEqual([20_000, 'id-30001', 'id-50000']);
  expect(held).toBeLessThanOrEqual(20_200);
  expect(texts).toBe(20_000);
});
