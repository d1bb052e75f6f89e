import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConflictError } from '../../../src/errors.js';
import { takeOwnership } from '../../../src/loop/online/ownership.js';
import { resetLoop } from '../../../src/loop/online/reset.js';
import { newLoopState } from '../../../src/loop/online/state.js';
import type { TrajectoryStore } from '../../../src/trajectory/index.js';
import { useStore } from '../../trajectory/store/support.js';

let store: TrajectoryStore;
useStore('ownership', (opened) => {
  store = opened;
});

const root = mkdtempSync(join(tmpdir(), 'searchloop-ownership-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folders = 0;
const newFolder = (): string => {
  const folder = join(root, `${++folders}`);
  mkdirSync(folder);
  return folder;
};
const state = newLoopState(1, 'base');
const published = { ...state, live: 'v1', published: [{ version: 'v1', trainerStep: 4, at: 0 }] };
const nobody = (): never => {
  throw new Error('nobody else came');
};

test('a state belongs to the folder that its versions lie in; another one changes nothing', async () => {
  const folder = newFolder();
  const owned = await takeOwnership(store, folder, null, nobody);
  await owned.putDocuments({ loop: state });
  const owner = await store.readDocument('loop.owner');
  for (const found of [state, published])
    await expect(takeOwnership(store, newFolder(), found, nobody)).rejects.toThrow(
      'is that of another folder',
    );
  expect(await store.readDocument('loop.owner')).toEqual(owner);
  await owned.putDocuments({ loop: { ...state, step: 1 } });
  // The same folder at the next start.
  await takeOwnership(store, folder, state, nobody);
});

test('a folder with checkpoints or versions is no new loop of a store that knows of none', async () => {
  await store.putDocuments({ 'loop.owner': null });
  const folder = newFolder();
  await takeOwnership(store, folder, null, nobody);
  // Killed before it was written that the store's loop is this folder's.
  await store.putDocuments({ 'loop.owner': null });
  await takeOwnership(store, folder, null, nobody);
  await store.putDocuments({ 'loop.owner': null });
  for (const part of ['checkpoints/step-00000001', 'versions/v1']) {
    const used = newFolder();
    mkdirSync(join(used, part), { recursive: true });
    await expect(takeOwnership(store, used, null, nobody)).rejects.toThrow('searchloop loop reset');
  }
  expect(await store.readDocument('loop.owner')).toBeNull();
  const { folder: aside } = await resetLoop(store, { folder: join(root, `${folders}`) });
  expect(aside).not.toBeNull();
  await takeOwnership(store, newFolder(), null, nobody);
});

test('who takes the state over ends the writes of whoever had it', async () => {
  const folder = newFolder();
  await store.putDocuments({ 'loop.owner': null });
  const lost: ConflictError[] = [];
  const first = await takeOwnership(store, folder, null, (error) => lost.push(error));
  const second = await takeOwnership(store, folder, state, nobody);
  await second.putDocuments({ loop: { ...state, step: 2 } });
  await expect(first.putDocuments({ loop: { ...state, step: 3 } })).rejects.toThrow(ConflictError);
  const adapter = { digest: 'v1', parentDigest: null, receipt: null };
  const step = { adapter, trajectoryIds: [], documents: { loop: state } };
  await expect(first.commitStep(step)).rejects.toThrow(ConflictError);
  expect(lost).toHaveLength(2);
  expect(await store.readDocument('loop')).toMatchObject({ step: 2 });
  expect(await store.adapters()).toEqual([]);
});

test('states and folders of builds without an id get one, unless the folder is plainly another one', async () => {
  await store.putDocuments({ 'loop.owner': null });
  await expect(takeOwnership(store, newFolder(), published, nobody)).rejects.toThrow('names version v1');
  expect(await store.readDocument('loop.owner')).toBeNull();
  const folder = newFolder();
  mkdirSync(join(folder, 'versions', 'v1'), { recursive: true });
  await takeOwnership(store, folder, published, nobody);
  expect(await store.readDocument('loop.owner')).not.toBeNull();
});
