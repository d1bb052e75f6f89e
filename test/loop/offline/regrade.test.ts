import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { regrade } from '../../../src/loop/index.js';
import type { RegradeOptions } from '../../../src/loop/offline/regrade.js';
import { openTrajectoryStore, type TrajectoryStore } from '../../../src/trajectory/index.js';
import { feedback, MODEL, makeRecord, notes, TOKENIZER, tokenizer } from '../../trajectory/store/support.js';

let folder: string;
let store: TrajectoryStore;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'searchloop-regrade-'));
  store = openTrajectoryStore({ storage: { kind: 'sqlite', path: join(folder, 'store.db') }, retry: false });
  await store.useAuditor({ modelDigest: MODEL, tokenizer: TOKENIZER });
  await store.put(makeRecord('right', { answer: 'Paris' }), notes());
  await store.put(makeRecord('wrong', { answer: 'Lyon' }), notes());
  await store.put(makeRecord('given', { answer: 'Lyon' }), notes());
  for (const [id, answer] of [
    ['n0', 'Nice'],
    ['n1', 'nice'],
    ['n2', 'Lyon'],
  ] as const)
    await store.put({ ...makeRecord(id, { answer }), groupId: 'n' }, notes({ requestId: 'n' }));
  for (const id of ['right', 'wrong']) await store.addFeedback(feedback(id, { goldAnswers: ['Paris'] }));
  await store.addFeedback(feedback('given', { reward: -0.5 }));
});
afterEach(async () => {
  await store?.close();
  rmSync(folder, { recursive: true, force: true });
});

const options: RegradeOptions = {
  tokenizer,
  modelDigest: MODEL,
  settings: { rule: 'outcome', formatWeight: 0.1, searchCost: 0 },
  withUnlabelled: false,
};

const NONE_SKIPPED = { otherModel: 0, quarantined: 0 };
const judge = { name: 'judge', score: async (items: readonly unknown[]) => items.map(() => 0.2) };

async function grades(): Promise<Record<string, unknown>> {
  const heads = await store.list({}, { limit: 50, order: 'oldest' });
  return Object.fromEntries(
    heads.flatMap(({ id, grade }) => (grade === null ? [] : [[id, [grade.value, grade.source]]])),
  );
}

test('labelled answers get their reward by the rule; what somebody gave stands; the others are left', async () => {
  expect(await regrade(store, options)).toEqual({ graded: 3, left: 0, ...NONE_SKIPPED });
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
  expect(await regrade(store, all)).toEqual({ graded: 3, left: 3, ...NONE_SKIPPED });
  expect(await regrade(store, { ...all, majority: true })).toEqual({ graded: 6, left: 0, ...NONE_SKIPPED });
  expect(await grades()).toMatchObject({
    n0: [1, 'majority'],
    n1: [1, 'majority'],
    n2: [0, 'majority'],
    right: [1, 'gold'],
  });
  await regrade(store, { ...all, majority: true, judge });
  expect(await grades()).toMatchObject({ n0: [0.2, 'judge'], given: [-0.5, 'feedback'] });
});

test('what another model wrote, and what failed the audit, is not read', async () => {
  await store.put({ ...makeRecord('foreign'), modelDigest: 'other' }, notes());
  const broken = makeRecord('broken');
  await store.put({ ...broken, lossMask: broken.lossMask.map(() => 1 as const) }, notes());
  for (const id of ['foreign', 'broken']) await store.addFeedback(feedback(id, { goldAnswers: ['Paris'] }));
  const skipped = { otherModel: 1, quarantined: 1 };
  expect(await regrade(store, options)).toEqual({ graded: 3, left: 0, ...skipped });
  expect(await regrade(store, { ...options, withUnlabelled: true, judge })).toMatchObject(skipped);
  expect(Object.keys(await grades())).not.toEqual(expect.arrayContaining(['foreign']));
  expect(Object.keys(await grades())).not.toEqual(expect.arrayContaining(['broken']));
});

test('what users only compared keeps what the pair was worth, with a judge too', async () => {
  await store.addFeedback(feedback('n0', { preferredOver: 'n2' }));
  const pair = { source: 'feedback', rule: 'preferred_over' };
  await store.setGrades([
    { id: 'n0', value: 1, ...pair },
    { id: 'n2', value: 0, ...pair },
  ]);
  const asked = jest.spyOn(judge, 'score');
  expect(await regrade(store, { ...options, judge, majority: true })).toMatchObject({ graded: 3, left: 2 });
  expect(asked).not.toHaveBeenCalled();
  expect(await regrade(store, { ...options, judge, withUnlabelled: true })).toMatchObject({
    graded: 4,
    left: 2,
  });
  expect(await grades()).toMatchObject({ n0: [1, 'feedback'], n1: [0.2, 'judge'], n2: [0, 'feedback'] });
  asked.mockRestore();
});

test('rollouts of the loop follow the rule too, by what is known of their question now', async () => {
  const other = 'question that nobody knows an answer to?';
  const conversation = [{ role: 'user', content: 'hello' }, ...notes().messages];
  await store.put(makeRecord('own', { answer: 'Paris' }), notes({ source: 'train' }));
  await store.put(makeRecord('own-wrong', { answer: 'Nice' }), notes({ source: 'train' }));
  await store.put(
    makeRecord('elsewhere', { answer: 'Paris' }),
    notes({ source: 'train', messages: conversation }),
  );
  await store.put(
    makeRecord('unknown', { question: other }),
    notes({ source: 'train', messages: [{ role: 'user', content: other }] }),
  );
  await store.setGrades(
    ['own', 'own-wrong', 'elsewhere', 'unknown'].map((id) => ({
      id,
      value: 0.5,
      source: 'gold',
      rule: 'old',
    })),
  );
  expect(await regrade(store, options)).toEqual({ graded: 5, left: 2, ...NONE_SKIPPED });
  expect(await grades()).toMatchObject({
    own: [1, 'gold'],
    'own-wrong': [0, 'gold'],
    elsewhere: [0.5, 'gold'],
    unknown: [0.5, 'gold'],
  });
  const [head] = await store.list({ ids: ['own'] }, { limit: 1, order: 'oldest' });
  expect(head?.grade?.rule).toBe('outcome,formatWeight=0.1,searchCost=0');
});
