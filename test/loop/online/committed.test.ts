// What was written down holds, whatever fails after it: the state in memory and in the store, the engine and the disk agree.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EngineAwayError } from '../../../src/engine/index.js';
import { Book } from '../../../src/loop/online/book.js';
import type { LoopHouse } from '../../../src/loop/online/house.js';
import { Publisher } from '../../../src/loop/online/publisher.js';
import { type LoopState, newLoopState, readLoopState } from '../../../src/loop/online/state.js';
import type { TrajectoryStore } from '../../../src/trajectory/index.js';
import { useStore } from '../../trajectory/store/support.js';
import { newWatch } from '../support/watch.js';

let store: TrajectoryStore;
useStore('committed', (opened) => {
  store = opened;
});
const folder = mkdtempSync(join(tmpdir(), 'searchloop-committed-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** An engine that has the versions `resident` and never unloads one; what fails is told. */
function made(state: LoopState, resident: readonly string[]) {
  const failures: string[] = [];
  const engine = {
    liveAdapter: null as { name: string; fault: string | null } | null,
    isAway: false,
    listAdapters: () => [...resident, 'old'].map((version) => ({ name: `loop-${version}`, version })),
    async setLiveAdapter(name: string | null): Promise<void> {
      if (engine.isAway) throw new EngineAwayError('the engine is restarting');
      engine.liveAdapter = name === null ? null : { name, fault: null };
    },
    unloadAdapter: () => Promise.reject(new Error('it does not go')),
  };
  const house = {
    store,
    folder,
    settings: { keepVersions: 3, webhooks: [] },
    engine,
    onNote: () => {},
    onFailure: (error: Error, doing: string) => failures.push(`${doing}: ${error.message}`),
  } as unknown as LoopHouse;
  const publisher = new Publisher(house, { version: 'base', name: null });
  return { failures, engine, publisher, book: new Book(house, publisher, state) };
}

const published = (...versions: string[]): LoopState => ({
  ...newLoopState(1, 'base'),
  live: versions.at(-1) ?? 'base',
  published: versions.map((version, i) => ({ version, trainerStep: i + 1, at: 0 })),
});
const onTrial = (): LoopState => ({
  ...published('v1'),
  watch: newWatch({ version: 'v2', against: 'v1', trainerStep: 2, confirmedBy: null }),
});

test('a version goes live though the old ones cannot be removed', async () => {
  const { book, publisher, engine, failures } = made({ ...onTrial(), rolledBackInARow: 2 }, ['v1', 'v2']);
  await publisher.keep(book.state, book.commit);
  expect(book.state).toMatchObject({ live: 'v2', watch: null, rolledBackInARow: 0 });
  expect(await readLoopState(store)).toEqual(book.state);
  expect(engine.liveAdapter?.name).toBe('loop-v2');
  expect(failures).toEqual(['the removal of old versions: it does not go']);
});

test('a swap that the engine does not make is made up for', async () => {
  const { book, publisher, engine } = made(onTrial(), ['v1', 'v2']);
  engine.isAway = true;
  await expect(publisher.keep(book.state, book.commit)).rejects.toThrow(EngineAwayError);
  expect(book.state.live).toBe('v2');
  expect(publisher.isShown(book.state)).toBe(false);
  engine.isAway = false;
  await publisher.show(book.state);
  expect(publisher.isShown(book.state)).toBe(true);
  expect(engine.liveAdapter?.name).toBe('loop-v2');
});

const rollback = (book: Book, mayBeOlder: boolean, isVerdict = true) => ({
  reason: 'worse',
  by: null,
  mayBeOlder,
  isVerdict,
  returnTo: async () => ({}),
  commit: book.commit,
});

test('where the files of the version to go back to are damaged, an older one answers; not where it was named', async () => {
  const { book, publisher, engine, failures } = made(published('v1', 'v2', 'v3'), ['v1', 'v3']);
  await expect(publisher.rollBack(book.state, 'v2', rollback(book, false))).rejects.toThrow(
    'version v2 is not at',
  );
  expect(book.state.live).toBe('v3');
  await publisher.rollBack(book.state, 'v2', rollback(book, true));
  expect(book.state).toMatchObject({ live: 'v1', rolledBackInARow: 1 });
  expect(engine.liveAdapter?.name).toBe('loop-v1');
  expect(await readLoopState(store)).toEqual(book.state);
  // An order says nothing of what users think.
  await publisher.rollBack(book.state, 'base', rollback(book, true, false));
  expect(book.state).toMatchObject({ live: 'base', rolledBackInARow: 1 });
  expect(failures).toContainEqual(
    expect.stringContaining('the way back to version v2: version v2 is not at'),
  );
});
