import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RegradeOptions, regrade } from '../../../src/loop/index.js';
import { openTrajectoryStore, type TrajectoryStore } from '../../../src/trajectory/index.js';
import { feedback, makeRecord, notes, tokenizer } from '../../trajectory/store/support.js';

let folder: string;
let store: TrajectoryStore;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'searchloop-regrade-'));
  store = openTrajectoryStore({ storage: { kind: 'sqlite', path: join(folder, 'store.db') }, retry: false });
  await store.put(makeRecord('right', { answer: 'Paris' }), notes());
  await store.put(makeRecord('wrong', { answer: 'Lyon' }), notes());
  await store.put(makeRecord('given', { answer: 'Lyon' }), notes());
  for (const [id, answer] of [
    ['n0', 'Nice'],
    ['n1', 'nice'],
    ['n2', 'Lyon'],
  ] as const)
    await store.put({ ...makeRecord(id, { answer }), groupId: 'n' }, notes({ requestId: 'n' }));
  // Of the loop: graded by what was known of its question.
  await store.put(makeRecord('own', { answer: 'Paris' }), notes({ source: 'train' }));
  for (const id of ['right', 'wrong']) await store.addFeedback(feedback(id, { goldAnswers: ['Paris'] }));
  await store.addFeedback(feedback('given', { reward: -0.5 }));
});
afterAll(async () => {
  await store?.close();
  rmSync(folder, { recursive: true, force: true });
});

const options: RegradeOptions = {
  tokenizer,
  settings: { rule: 'outcome', formatWeight: 0.1, searchCost: 0 },
  withUnlabelled: false,
};

async function grades(): Promise<Record<string, unknown>> {
  const heads = await store.list({}, { limit: 50, order: 'oldest' });
  return Object.fromEntries(
    heads.flatMap(({ id, grade }) => (grade === null ? [] : [[id, [grade.value, grade.source]]])),
  );
}

test('labelled answers get their reward by the rule; what somebody gave stands; the others are left', async () => {
  expect(await regrade(store, options)).toEqual({ graded: 3, left: 0 });
  const first = { right: [1, 'gold'], wrong: [0, 'gold'], given: [-0.5, 'feedback'] };
  expect(await grades()).toEqual(first);
  // The rule changes: a search costs something.
  const dearer = { rule: 'outcome', formatWeight: 0.1, searchCost: 0.25 } as const;
  await regrade(store, { ...options, settings: dearer });
  expect(await grades()).toEqual({ ...first, right: [0.75, 'gold'], wrong: [-0.25, 'gold'] });
  const [head] = await store.list({ ids: ['right'] }, { limit: 1, order: 'oldest' });
  expect(head?.grade?.rule).toBe('outcome,formatWeight=0.1,searchCost=0.25');
});

test('answers that nobody labelled are graded where that is wished and somebody can tell', async () => {
  const all = { ...options, withUnlabelled: true };
  expect(await regrade(store, all)).toEqual({ graded: 3, left: 3 });
  expect(await regrade(store, { ...all, majority: true })).toEqual({ graded: 6, left: 0 });
  expect(await grades()).toMatchObject({
    n0: [1, 'majority'],
    n1: [1, 'majority'],
    n2: [0, 'majority'],
    right: [1, 'gold'],
  });
  const judge = { name: 'judge', score: async (items: readonly unknown[]) => items.map(() => 0.2) };
  await regrade(store, { ...all, majority: true, judge });
  expect(await grades()).toMatchObject({ n0: [0.2, 'judge'], given: [-0.5, 'feedback'] });
  expect(await grades()).not.toHaveProperty('own');
});
