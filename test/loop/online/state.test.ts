// How big the loop's state gets: it is written with each move.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LoopHouse } from '../../../src/loop/online/house.js';
import { Publisher } from '../../../src/loop/online/publisher.js';
import { type LoopState, newLoopState, readLoopState } from '../../../src/loop/online/state.js';
import type { TrajectoryStore } from '../../../src/trajectory/index.js';
import { useStore } from '../../trajectory/store/support.js';
import { newWatch } from '../support/watch.js';

let store: TrajectoryStore;
useStore('state', (opened) => {
  store = opened;
});
const folder = mkdtempSync(join(tmpdir(), 'searchloop-state-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const versions = ['v1', 'v2', 'v3', 'v4', 'v5', 'v6'];
const publisher = (): Publisher =>
  new Publisher(
    {
      store,
      folder,
      settings: { keepVersions: 3 },
      engine: {
        listAdapters: () => versions.map((version) => ({ name: `loop-${version}`, version })),
        setLiveAdapter: async () => {},
        unloadAdapter: async () => {},
      },
      onNote: () => {},
    } as unknown as LoopHouse,
    { version: 'base', name: null },
  );

const trial = (state: LoopState, version: string, confirmedBy: string[] | null): LoopState => ({
  ...state,
  watch: newWatch({ version, against: state.live, trainerStep: Number(version.slice(1)), confirmedBy }),
});

test('of published versions those are remembered that can be gone back to', async () => {
  const publishing = publisher();
  let state = newLoopState(1, 'base');
  for (const version of versions)
    await publishing.keep(trial(state, version, version === 'v2' ? ['q'] : null), async (next) => {
      state = next;
    });
  expect(state).toMatchObject({ live: 'v6', confirmed: 'v2', counts: { published: 6 } });
  expect(state.published.map(({ version }) => version)).toEqual(['v2', 'v4', 'v5', 'v6']);
  expect(publishing.before(state)).toBe('v5');
  expect(publishing.trainerStepOf(state)).toBe(6);
});

test('questions of earlier stretches are written apart from the state, where they change', async () => {
  const begun = newLoopState(1, 'base');
  const { stretch } = begun;
  // As earlier builds wrote it.
  await store.putDocuments({
    loop: { ...begun, stretch: { ...stretch, used: ['a', 'b'] } },
    'loop.used': null,
  });
  const read = (await readLoopState(store)) as LoopState;
  expect(read.stretch.used).toEqual(['a', 'b']);
  const writes = jest.spyOn(store, 'putDocuments');
  const saving = publisher();
  await saving.save(read);
  await saving.save({ ...read, step: 1 });
  await saving.save({ ...read, step: 2, stretch: { ...read.stretch, used: ['a', 'b', 'c'] } });
  expect(writes.mock.calls.map(([documents]) => documents['loop.used'])).toEqual([
    ['a', 'b'],
    undefined,
    ['a', 'b', 'c'],
  ]);
  for (const [documents] of writes.mock.calls)
    expect(documents['loop']).toMatchObject({ stretch: { used: [] } });
  writes.mockRestore();
  expect(await readLoopState(store)).toMatchObject({ step: 2, stretch: { used: ['a', 'b', 'c'] } });
});
