// Who may teach, over a real store: gold answers, answers that nobody labelled, pairs.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { GateMeasures } from '../../../src/loop/online/gate/measure.js';
import { isHeldOut, questionKey } from '../../../src/loop/online/gate/questions.js';
import type { LoopHouse } from '../../../src/loop/online/house.js';
import { Judge } from '../../../src/loop/online/judge.js';
import { LabelIndex } from '../../../src/loop/online/labels.js';
import type { Versions } from '../../../src/loop/online/publish.js';
import { unusedLabels } from '../../../src/loop/online/unused.js';
import { openTrajectoryStore, type TrajectoryStore } from '../../../src/trajectory/index.js';
import { feedback, MODEL, makeRecord, notes, TOKENIZER } from '../../trajectory/store/support.js';

let folder: string;
let store: TrajectoryStore;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'searchloop-labels-'));
  store = openTrajectoryStore({ storage: { kind: 'sqlite', path: join(folder, 'store.db') }, retry: false });
  await store.useAuditor({ modelDigest: MODEL, tokenizer: TOKENIZER });
});
afterEach(async () => {
  jest.restoreAllMocks();
  await store.delete({});
});
afterAll(async () => {
  await store?.close();
  rmSync(folder, { recursive: true, force: true });
});

const QUESTIONS = Array.from({ length: 60 }, (_, i) => `question ${i}?`);
const [FIRST = '', SECOND = ''] = QUESTIONS.filter((question) => !isHeldOut(questionKey(question)));
const [JUDGING = '', OTHER = ''] = QUESTIONS.filter((question) => isHeldOut(questionKey(question)));

async function answered(id: string, question: string, answer = 'Paris'): Promise<void> {
  const messages = [{ role: 'user', content: question }];
  await store.put(makeRecord(id, { question, answer }), notes({ messages, keyId: 'asker' }));
}
const indexOf = (withUnlabelled: boolean) => new LabelIndex(store, { reserved: new Set(), withUnlabelled });

test('answers without a label are known only where somebody can tell what they are worth', async () => {
  await answered('a', FIRST);
  await answered('b', SECOND);
  await store.addFeedback(feedback('a', { goldAnswers: ['Lyon'] }));
  const plain = indexOf(false);
  await plain.refresh();
  expect([...plain.toReplay().values()].map(({ head }) => head.id)).toEqual(['a']);
  expect(plain.unlabelled()).toEqual([]);

  const judged = indexOf(true);
  await judged.refresh();
  expect([...judged.toReplay().values()].map(({ head, goldenAnswers }) => [head.id, goldenAnswers])).toEqual(
    expect.arrayContaining([
      ['a', ['Lyon']],
      ['b', []],
    ]),
  );
  expect(judged.answers().map(({ head }) => head.id)).toEqual(['a']);
  // Gold answers come later, to another answer to the same question: they take its place.
  await answered('c', SECOND);
  await store.addFeedback(feedback('c', { goldAnswers: ['Nice'] }));
  await judged.refresh();
  expect(judged.toReplay().get(questionKey(SECOND))?.goldenAnswers).toEqual(['Nice']);
});

test('of a pair the last word of each key counts, an admin before all others, and a tie says nothing', async () => {
  for (const id of ['a', 'b']) await answered(id, FIRST);
  const labels = indexOf(false);
  const verdict = async () => {
    await labels.refresh();
    return labels.pairs().map(({ better, worse }) => `${better.head.id} before ${worse.head.id}`);
  };
  const prefer = (better: string, worse: string, keyId: string, role: 'feedback' | 'admin' = 'feedback') =>
    store.addFeedback(feedback(better, { preferredOver: worse, keyId, role }));
  await prefer('a', 'b', 'one');
  expect(await verdict()).toEqual(['a before b']);
  await prefer('b', 'a', 'two');
  expect(await verdict()).toEqual([]);
  await prefer('b', 'a', 'one');
  expect(await verdict()).toEqual(['b before a']);
  await prefer('a', 'b', 'boss', 'admin');
  expect(await verdict()).toEqual(['a before b']);
  // A label says more than a comparison, once both have one.
  await store.addFeedback(feedback('a', { reward: 1 }));
  expect(await verdict()).toEqual(['a before b']);
  await store.addFeedback(feedback('b', { reward: 0.5 }));
  expect(await verdict()).toEqual([]);
});

test('what was deleted is forgotten, with its pairs', async () => {
  for (const id of ['a', 'b']) await answered(id, FIRST);
  await store.addFeedback(feedback('a', { preferredOver: 'b' }));
  const labels = indexOf(false);
  await labels.refresh();
  const [pair] = labels.pairs();
  await store.delete({ ids: ['b'] });
  expect(await labels.present([pair!.better, pair!.worse])).toHaveLength(1);
  expect(labels.pairs()).toEqual([]);
});

test('the gate takes the answers that two keys agree on or an admin gave; keys that contradict each other teach', async () => {
  const labels = indexOf(false);
  const say = (keyId: string, goldAnswers: string[], role: 'feedback' | 'admin' = 'feedback') =>
    store.addFeedback(feedback('a', { keyId, goldAnswers, role }));
  const judging = async () => {
    await labels.refresh();
    return labels.toJudge().map(({ goldenAnswers }) => goldenAnswers);
  };
  await answered('a', JUDGING);
  await say('one', ['Paris', 'Paname']);
  expect(await judging()).toEqual([]);
  await say('two', ['London']);
  expect(await judging()).toEqual([]);
  expect(labels.answers()[0]?.goldenAnswers).toEqual(['Paris', 'Paname', 'London']);
  await say('two', ['paris', 'London']);
  expect(await judging()).toEqual([['Paris']]);
  await say('boss', ['Lyon'], 'admin');
  expect(await judging()).toEqual([['Lyon']]);
  // An answer that two keys called right.
  await answered('b', OTHER, 'Nice');
  for (const keyId of ['one', 'two']) await store.addFeedback(feedback('b', { keyId, reward: 1 }));
  expect(await judging()).toEqual([['Lyon'], ['Nice']]);
});

test('what a user thinks of an answer takes nothing back that an admin said of the question', async () => {
  const labels = indexOf(false);
  for (const [id, question] of [
    ['a', FIRST],
    ['j', JUDGING],
  ] as const) {
    await answered(id, question, 'Lyon');
    await store.addFeedback(feedback(id, { goldAnswers: ['Paris'], keyId: 'boss', role: 'admin' }));
  }
  const golds = async () => {
    await labels.refresh();
    const taught = [...labels.toReplay().values()].map(({ goldenAnswers }) => goldenAnswers);
    return [taught, labels.toJudge().map(({ goldenAnswers }) => goldenAnswers)];
  };
  for (const rating of [1, 0]) {
    for (const id of ['a', 'j']) await store.addFeedback(feedback(id, { rating, keyId: 'user' }));
    expect(await golds()).toEqual([[['Paris']], [['Paris']]]);
  }
  // The answer as it was given is worth what the admin's gold answer says.
  expect(labels.answers().map(({ label }) => label.reward)).toEqual([null, null]);
});

test('a rating with the right answer says both: the answer is wrong, and what new ones are compared with', async () => {
  const labels = indexOf(false);
  await answered('a', FIRST, 'Lyon');
  await store.addFeedback(feedback('a', { rating: 0, goldAnswers: ['Paris'] }));
  await labels.refresh();
  expect([...labels.toReplay().values()]).toMatchObject([
    { goldenAnswers: ['Paris'], label: { reward: { value: 0 }, golds: { answers: ['Paris'] } } },
  ]);
  // Another key calls the answer right: that is one of two words on it, and none on the question.
  await store.addFeedback(feedback('a', { rating: 1, keyId: 'other' }));
  await labels.refresh();
  expect([...labels.toReplay().values()]).toMatchObject([
    { goldenAnswers: ['Paris'], label: { reward: { value: 0.5 } } },
  ]);
});

test('who calls an answer right stands behind the gold answer that it is, and behind no other', async () => {
  const labels = indexOf(false);
  for (const [id, question] of [
    ['a', JUDGING],
    ['b', OTHER],
  ] as const) {
    await answered(id, question, 'The Paris');
    await store.addFeedback(feedback(id, { rating: 1, keyId: 'one' }));
  }
  await store.addFeedback(feedback('a', { goldAnswers: ['Paris', 'Paname'], keyId: 'two' }));
  await store.addFeedback(feedback('b', { goldAnswers: ['Lyon'], keyId: 'two' }));
  await labels.refresh();
  expect(labels.toJudge().map(({ goldenAnswers }) => goldenAnswers)).toEqual([['Paris']]);
  // Of which it is not known any more where somebody says that the answer is wrong.
  await store.addFeedback(feedback('a', { rating: 0, keyId: 'three' }));
  await labels.refresh();
  expect(labels.toJudge()).toEqual([]);
});

test.each(['list', 'texts', 'lastWordsOf'] as const)(
  'what was said while "%s" fails is heard by the next refresh',
  async (name) => {
    const labels = indexOf(false);
    await answered('a', FIRST);
    await store.addFeedback(feedback('a', { goldAnswers: ['Lyon'] }));
    await labels.refresh();
    await answered('b', SECOND);
    await store.addFeedback(feedback('b', { goldAnswers: ['Nice'] }));
    jest.spyOn(store, name).mockRejectedValueOnce(new Error('the store is away'));
    await expect(labels.refresh()).rejects.toThrow('the store is away');
    expect((await labels.refresh()).map(({ head }) => head.id)).toEqual(['b']);
    expect(labels.answers()).toHaveLength(2);
    expect(await labels.refresh()).toEqual([]);
  },
);

test('answers that nobody labelled, and labels read before, outlast a failed read of records', async () => {
  const labels = indexOf(true);
  await answered('a', FIRST);
  await store.addFeedback(feedback('a', { reward: 1 }));
  await answered('b', SECOND);
  const { texts } = store;
  // The second one is that of records without a label.
  jest
    .spyOn(store, 'texts')
    .mockImplementationOnce((ids) => texts.call(store, ids))
    .mockRejectedValueOnce(new Error('the store is away'));
  await expect(labels.refresh()).rejects.toThrow('the store is away');
  expect((await labels.refresh()).map(({ head }) => head.id)).toEqual(['a']);
  expect(labels.unlabelled().map(({ head }) => head.id)).toEqual(['b']);
});

test('what was deleted is forgotten though no step chose it; with it goes all that the index held', async () => {
  const labels = indexOf(false);
  const ids = Array.from({ length: 230 }, (_, i) => `id-${i}`);
  await Promise.all(ids.map((id) => answered(id, FIRST)));
  await Promise.all(ids.map((id) => store.addFeedback(feedback(id, { reward: 1 }))));
  await labels.refresh();
  expect(labels.answers()).toHaveLength(230);
  const listed = jest.spyOn(store, 'list');
  await store.delete({ ids: ids.slice(1) });
  for (let i = 0; i < 4; i++) await labels.refresh();
  expect(labels.answers().map(({ head }) => head.id)).toEqual(['id-0']);
  // A part at a time.
  for (const [{ ids: asked }] of listed.mock.calls) expect(asked?.length).toBeLessThanOrEqual(200);
  expect(listed.mock.calls.length).toBeLessThanOrEqual(4);
});

test('what a key had said is forgotten when it was deleted: labels and comparisons', async () => {
  for (const id of ['a', 'b', 'c']) await answered(id, FIRST);
  const say = (id: string, keyId: string, changes: object) =>
    store.addFeedback(feedback(id, { keyId, ...changes }));
  await say('a', 'one', { reward: 1 });
  await say('a', 'two', { reward: 0 });
  await say('c', 'one', { goldAnswers: ['Paris'] });
  await say('a', 'one', { preferredOver: 'b' });
  const labels = indexOf(false);
  await labels.refresh();
  expect(labels.pairs()).toHaveLength(1);
  expect(labels.answers().map(({ head }) => head.id)).toEqual(['a', 'c']);
  await store.delete({ keyId: 'one' });
  await labels.sweep();
  expect(labels.pairs()).toEqual([]);
  expect(labels.answers()).toMatchObject([{ head: { id: 'a' }, label: { reward: { value: 0 } } }]);
  // The third was known for the comparison alone.
  expect(labels.forgotten).toBe(2);
});

test('a loop that is at rest lets go of what was deleted, with what the gate keeps of it', async () => {
  const forget = jest.spyOn(GateMeasures.prototype, 'forgetAllBut');
  const judge = new Judge({ gateQuestions: [] } as unknown as LoopHouse, {} as Versions);
  const labels = indexOf(false);
  for (const [id, question] of [
    ['a', JUDGING],
    ['b', OTHER],
  ] as const) {
    await answered(id, question);
    await store.addFeedback(feedback(id, { goldAnswers: [id], keyId: 'boss', role: 'admin' }));
  }
  const look = async (): Promise<void> => {
    await labels.sweep();
    await judge.forgetDeleted(labels);
  };
  await labels.refresh();
  await look();
  await look();
  const [a, b] = ['a', 'b'].map((id) => expect.objectContaining({ goldenAnswers: [id] }));
  // Once after the start: others may have gone while no process listened.
  expect(forget.mock.calls).toEqual([[[a, b]]]);
  await store.delete({ ids: ['a'] });
  await look();
  await look();
  expect(forget.mock.calls.slice(1)).toEqual([[[b]]]);
  expect(labels.answers().map(({ head }) => head.id)).toEqual(['b']);
});

test('the gate is asked no question that was deleted; another answer to it takes its place', async () => {
  const labels = indexOf(false);
  for (const [id, question] of [
    ['old', JUDGING],
    ['new', JUDGING],
    ['other', OTHER],
  ] as const) {
    await answered(id, question);
    await store.addFeedback(feedback(id, { goldAnswers: [id], keyId: 'boss', role: 'admin' }));
  }
  await labels.refresh();
  const judge = new Judge({ gateQuestions: [] } as unknown as LoopHouse, {} as Versions);
  const golds = async () => (await judge.pool(labels)).map(({ goldenAnswers }) => goldenAnswers[0]);
  expect(await golds()).toEqual(['new', 'other']);
  await store.delete({ ids: ['new', 'other'] });
  expect(await golds()).toEqual(['old']);
});

test('an answer that is called right is right as a whole, however long it is', async () => {
  const long = `Paris, ${'which lies on the Seine, '.repeat(40)}in France`;
  await answered('a', FIRST, long);
  await store.addFeedback(feedback('a', { rating: 1 }));
  const labels = indexOf(false);
  await labels.refresh();
  expect(labels.answers().map(({ goldenAnswers }) => goldenAnswers)).toEqual([[long]]);
});

test('ratings and comparisons from which nothing is learned are counted by reason', async () => {
  for (const id of ['a', 'b', 'c', 'd']) await answered(id, FIRST);
  for (const id of ['a', 'b']) await store.addFeedback(feedback(id, { rating: 0.5 }));
  await store.addFeedback(feedback('a', { preferredOver: 'b' }));
  await store.addFeedback(feedback('c', { preferredOver: 'd' }));
  const labels = indexOf(false);
  await labels.refresh();
  labels.unaskable.add([{ role: 'user', content: 'long' }]);
  const unused = (mode: 'replay' | 'logged', algorithm: 'grpo' | 'reinforce++') =>
    unusedLabels(
      {
        run: { algorithm, objective: { advantage: algorithm } },
        settings: { mode },
        learnsUnlabelled: false,
      } as LoopHouse,
      labels,
    );
  const both = {
    'compared, though both answers have labels': 1,
    'not to be asked: the window is too small for the question': 1,
  };
  expect(unused('logged', 'grpo')).toEqual(both);
  expect(unused('replay', 'reinforce++')).toEqual({
    ...both,
    'rated, with no right answer known to compare new ones with': 2,
    'compared, and reinforce++ knows no groups': 1,
  });
});

test('a question that cannot be asked is neither rolled out nor judged by; another answer to it may be', async () => {
  for (const [id, question] of [
    ['a', FIRST],
    ['j', JUDGING],
  ] as const) {
    await answered(id, question);
    await store.addFeedback(feedback(id, { goldAnswers: ['Paris'], keyId: 'boss', role: 'admin' }));
  }
  const labels = indexOf(false);
  await labels.refresh();
  expect([labels.toReplay().size, labels.toJudge().length]).toEqual([1, 1]);
  for (const content of [FIRST, JUDGING]) labels.unaskable.add([{ role: 'user', content }]);
  expect([labels.toReplay().size, labels.toJudge().length]).toEqual([0, 0]);
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: FIRST },
  ];
  await store.put(makeRecord('other', { question: FIRST }), notes({ messages }));
  await store.addFeedback(feedback('other', { goldAnswers: ['Paris'] }));
  await labels.refresh();
  expect([...labels.toReplay().values()].map(({ head }) => head.id)).toEqual(['other']);
});

test('lists that nobody asks for again hold no text of an answer that was deleted', async () => {
  const labels = indexOf(false);
  await answered('a', FIRST, 'a secret');
  await store.addFeedback(feedback('a', { rating: 1 }));
  await labels.refresh();
  const gone = new WeakRef(labels.answers()[0] as object);
  await store.delete({ ids: ['a'] });
  await labels.sweep();
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let tries = 0; tries < 50 && gone.deref() !== undefined; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    collect();
  }
  expect(gone.deref()).toBeUndefined();
});
