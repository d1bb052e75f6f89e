// What was deleted no longer speaks for or against a watched version, nor does it stay on the disk: while the loop works, and
// where it does not run.

import { loadConfig } from '../../../src/config/index.js';
import { Book } from '../../../src/loop/online/book.js';
import { Findings } from '../../../src/loop/online/findings.js';
import { forgetDeleted } from '../../../src/loop/online/forget-deleted.js';
import type { Judge } from '../../../src/loop/online/judge.js';
import { LabelIndex } from '../../../src/loop/online/labels.js';
import type { Publisher } from '../../../src/loop/online/publisher.js';
import { type LoopState, newLoopState, readLoopState } from '../../../src/loop/online/state.js';
import { newSequentialState, observePair } from '../../../src/loop/online/statistics/sequential-test.js';
import type { TrainerKeeper } from '../../../src/loop/online/trainer-keeper.js';
import { type Watch, watchSettings } from '../../../src/loop/online/watch.js';
import { Watchman } from '../../../src/loop/online/watchman.js';
import type { TrajectoryStore } from '../../../src/trajectory/index.js';
import { feedback, makeRecord, notes, useStore } from '../../trajectory/store/support.js';
import { newWatch } from '../support/watch.js';

const flags = { 'loop.watchMinPairs': 10, 'loop.watchMaxPairs': 60, 'loop.keyShare': 1 };
const { loop: settings } = loadConfig({ env: {}, flags });

let store: TrajectoryStore;
useStore('forget', (opened) => {
  store = opened;
});

const answered = (id: string, version: string) => store.put(makeRecord(id, { version }), notes());
const rate = (id: string, keyId: string, reward: number) =>
  store.addFeedback(feedback(id, { keyId, reward }));

/** Of each version `count` answers: a key that says all of the new one is bad, and others who find both good. */
async function complaints(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    for (const version of ['new', 'old']) await answered(`${version}-${i}`, version);
    await rate(`old-${i}`, 'user', 1);
    await rate(`new-${i}`, i < count - 2 ? 'critic' : 'user', i < count - 2 ? 0 : 1);
  }
}

const stateWith = (watch: Watch): LoopState => ({ ...newLoopState(0, 'old'), watch });

function watchmanOver(watch: Watch) {
  const publisher = {
    save: (state: LoopState) => store.putDocuments({ loop: state }),
  } as unknown as Publisher;
  const house = { settings, store, onNote: () => {}, onFailure: () => {} };
  const book = new Book(house, publisher, stateWith(watch));
  const rolledBack: string[] = [];
  const watchman = new Watchman({
    house,
    book,
    labels: new LabelIndex(store),
    findings: new Findings(async () => new Set()),
    judge: { forgetDeleted: async () => {} } as unknown as Judge,
    publisher: Object.assign(publisher, {
      rollBack: async (_state: LoopState, target: string) => void rolledBack.push(target),
    }),
    trainers: {} as TrainerKeeper,
  });
  return { watchman, book, rolledBack };
}

const onDisk = async (): Promise<string> => JSON.stringify(await store.readDocument('loop'));

test('what a key said that was deleted decides nothing, and is gone from the state as soon as it is heard of', async () => {
  await complaints(16);
  const { watchman, book, rolledBack } = watchmanOver(newWatch());
  // As much as it takes, before anybody acts on it.
  await watchman.hear();
  expect(watchman.isUrgent).toBe(true);
  await book.commit(watchman.state);
  expect(await onDisk()).toContain('critic');

  expect(await store.deleteFeedback({ keyId: 'critic' })).toMatchObject({ feedback: 14 });
  await watchman.hear();
  expect(watchman.isUrgent).toBe(false);
  expect(watchman.state.watch).toMatchObject({ test: { pairs: 2, sum: 0 }, older: { length: 14 } });
  expect(watchman.mustForget).toBe(true);
  await watchman.act();
  expect(rolledBack).toEqual([]);
  expect(watchman.mustForget).toBe(false);
  expect(await onDisk()).not.toContain('critic');
  expect((await readLoopState(store))?.watch?.pairs).toHaveLength(2);
  // An answer that goes takes what was said of it along.
  await store.delete({ ids: ['new-15'] });
  await watchman.hear();
  await watchman.act();
  expect(await onDisk()).not.toContain('new-15');
  expect((await readLoopState(store))?.watch?.test.pairs).toBe(1);
});

test('where the disk takes nothing it is written with the next look', async () => {
  await complaints(16);
  const { watchman, book } = watchmanOver(newWatch());
  await watchman.hear();
  await book.commit(watchman.state);
  await store.deleteFeedback({ keyId: 'critic' });
  await watchman.hear();
  jest.spyOn(store, 'putDocuments').mockRejectedValueOnce(new Error('the disk is full'));
  await expect(watchman.act()).rejects.toThrow('the disk is full');
  jest.restoreAllMocks();
  await watchman.hear();
  expect(watchman.mustForget).toBe(true);
  await watchman.act();
  expect(await onDisk()).not.toContain('critic');
});

test('a loop that does not run: the deletion itself goes through its state, unless somebody writes it meanwhile', async () => {
  await forgetDeleted(store, settings);
  await complaints(16);
  const { watchman, book } = watchmanOver(newWatch());
  await watchman.hear();
  await book.commit(watchman.state);
  await store.deleteFeedback({ keyId: 'critic' });
  const before = await onDisk();
  const { deletedAmong } = store;
  jest.spyOn(store, 'deletedAmong').mockImplementationOnce(async (ids) => {
    await store.putDocuments({ loop: { ...JSON.parse(before), step: 7 } });
    return deletedAmong(ids);
  });
  await forgetDeleted(store, settings);
  expect((await readLoopState(store))?.step).toBe(7);
  expect(await onDisk()).toContain('critic');
  jest.restoreAllMocks();
  await forgetDeleted(store, settings);
  expect(await onDisk()).not.toContain('critic');
  expect(await readLoopState(store)).toMatchObject({ step: 7, watch: { test: { pairs: 2 } } });
  const writes = jest.spyOn(store, 'putDocuments');
  await forgetDeleted(store, settings);
  expect(writes).not.toHaveBeenCalled();
  jest.restoreAllMocks();
});

test('questions that an earlier build wrote down as used, in the state itself, stay used', async () => {
  await complaints(4);
  const { watchman } = watchmanOver(newWatch());
  await watchman.hear();
  const { state } = watchman;
  await store.putDocuments({ loop: { ...state, stretch: { ...state.stretch, used: ['met', 'met too'] } } });
  await store.deleteFeedback({ keyId: 'critic' });
  await forgetDeleted(store, settings);
  expect(await onDisk()).not.toContain('critic');
  expect((await readLoopState(store))?.stretch.used).toEqual(['met', 'met too']);
});

test('pairs of an earlier build stay as they are: nobody knows who said what', async () => {
  const rules = watchSettings(settings);
  const test = [0, 1, 2].reduce((state) => observePair(state, 0, 1, rules), newSequentialState());
  const { pairs: _pairs, settled: _settled, ...older } = newWatch({ test });
  const counted = ['x0', 'y0', 'x1', 'y1', 'x2', 'y2'];
  await store.putDocuments({ loop: { ...stateWith(newWatch()), watch: { ...older, counted } } });
  const { watchman, book } = watchmanOver((await readLoopState(store))?.watch as Watch);
  await complaints(4);
  await watchman.hear();
  await book.commit(watchman.state);
  expect((await readLoopState(store))?.watch).toMatchObject({ test: { pairs: 7 }, settled: { pairs: 3 } });
  await store.deleteFeedback({ keyId: 'critic' });
  await watchman.hear();
  expect(watchman.state.watch).toMatchObject({ test: { pairs: 5, sum: -3 }, counted });
});
