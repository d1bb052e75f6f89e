// A server that waits for the folder of the loop follows what the other one publishes, and holds no more of it than that one does.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CancelledError } from '../../../src/errors.js';
import { claimRun } from '../../../src/loop/offline/run-folder.js';
import { newLoopState, STATE_DOCUMENT } from '../../../src/loop/online/state.js';
import { End, type TakeFolderOptions, takeFolder } from '../../../src/loop/online/take-folder.js';
import { eventually } from '../../support/eventually.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-follow-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('versions that are no way back any more are unloaded', async () => {
  const other = await claimRun(folder, {});
  const published = ['v1', 'v2', 'v3', 'v4', 'v5'];
  const state = {
    ...newLoopState(1, 'base'),
    live: 'v5',
    published: published.map((version, i) => ({ version, trainerStep: i + 1, at: 0 })),
  };
  let live: string | null = 'mine';
  const resident = new Set(['mine', ...published.map((version) => `loop-${version}`)]);
  const engine = {
    listAdapters: () => [...resident].map((name) => ({ name, version: name.replace('loop-', '') })),
    async setLiveAdapter(name: string | null): Promise<void> {
      live = name;
    },
    async unloadAdapter(name: string): Promise<void> {
      resident.delete(name);
    },
  };
  const stop = new AbortController();
  const failures: string[] = [];
  const options = {
    folder,
    engine,
    parts: {},
    config: { loop: { pollMs: 10 }, rollout: {} },
    store: { readDocument: async (name: string) => (name === STATE_DOCUMENT ? state : null) },
    onNote: () => {},
    onFailure: ({ message }: Error) => failures.push(message),
    signal: stop.signal,
  } as unknown as TakeFolderOptions;
  const end = new End(() => {});
  const taken = takeFolder(options, {}, { version: 'base', name: null }, end).catch((error) => error);
  await eventually(() => resident.size === 3);
  stop.abort();
  expect(await taken).toBeInstanceOf(CancelledError);
  await other.release(true);
  expect([live, [...resident], failures]).toEqual(['loop-v5', ['mine', 'loop-v4', 'loop-v5'], []]);
});
