// Beginning anew: with another policy, or without the folder that the state names. What people said stays.

import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { resetLoop } from '../../../src/loop/index.js';
import { openTrajectoryStore } from '../../../src/trajectory/index.js';
import { post } from '../../support/test-server.js';
import { openLoopHouse, type RunningHouse } from '../support/loop-house.js';
import { importTiny } from '../support/tiny-rl-run.js';
import { newWatch } from '../support/watch.js';

jest.setTimeout(600_000);

const home = mkdtempSync(join(tmpdir(), 'searchloop-reset-'));
const data = join(home, 'data');
const folder = join(data, 'loop');
let house: RunningHouse | null = null;
beforeAll(() => importTiny(home, join(__dirname, '..', '..', 'fixtures')));
afterAll(async () => {
  await house?.close();
  rmSync(home, { recursive: true, force: true });
});

test('a lost folder and a changed policy are refused; after a reset step 1 runs on the same labels', async () => {
  house = await openLoopHouse(home);
  for (const colour of ['red', 'green', 'blue', 'white']) {
    const body = { model: 'searchloop', messages: [{ role: 'user', content: `What is ${colour}?` }] };
    const { id } = (await (await post(`${house.url}/v1/chat/completions`, body)).json()) as { id: string };
    expect((await post(`${house.url}/v1/feedback`, { id, golden_answers: ['a colour'] })).status).toBe(200);
  }
  await house.loop.step();
  const { step, candidate } = house.loop.status();
  expect(step).toBe(1);
  await house.close();
  house = null;

  renameSync(folder, `${folder}-lost`);
  await expect(openLoopHouse(home)).rejects.toThrow('searchloop loop reset');
  rmSync(folder, { recursive: true });
  renameSync(`${folder}-lost`, folder);
  const changed = { 'training.rank': 8 };
  await expect(openLoopHouse(home, changed)).rejects.toThrow('rank: 4, now 8');

  const store = openTrajectoryStore({
    storage: { kind: 'sqlite', path: join(data, 'trajectories.db') },
    retry: false,
  });
  const state = (await store.readDocument('loop')) as object;
  await store.putDocuments({ loop: { ...state, watch: newWatch() } });
  const done = await resetLoop(store, { folder });
  // Without what users said of a version: a deletion would not find it there.
  expect(await store.readDocument(done.state ?? '')).toMatchObject({ state: { step: 1, watch: null } });
  await expect(resetLoop(store, { folder })).rejects.toThrow('knows of a loop');
  await store.close();
  const kept = readdirSync(done.folder ?? '');
  expect(kept).toEqual(expect.arrayContaining(['checkpoints', 'folder.json', 'run.json']));
  // Neither the claim nor what deletions could not reach there.
  expect(kept.filter((name) => /running|gate-answers/.test(name))).toEqual([]);

  house = await openLoopHouse(home, changed);
  expect(house.loop.status()).toMatchObject({ step: 0, candidate: null });
  await house.loop.step();
  expect(house.failures).toEqual([]);
  const anew = house.loop.status();
  expect(anew).toMatchObject({ step: 1, labels: { answers: 4 } });
  expect(anew.candidate).not.toBe(candidate);
  expect(existsSync(join(folder, 'checkpoints'))).toBe(true);
});
