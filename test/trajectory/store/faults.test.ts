// What was said to be stored is never lost, and nobody waits for a disk. The faults are put under the database
// driver of a real process.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createFaultLayer, type FaultLayer } from '../../../bench/faults/layer/fault-layer.js';
import { openDatabase } from '../../../src/storage/index.js';
import { openTrajectoryStore } from '../../../src/trajectory/index.js';
import { type ChildStore, startChildStore } from './child-store.js';
import { feedback, makeRecord } from './support.js';

jest.setTimeout(180_000);

let folder: string;
let layer: FaultLayer;
let file: string;
let child: ChildStore | null = null;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'searchloop-faults-'));
  layer = createFaultLayer(folder);
  file = join(layer.folder, 'store.db');
});
afterEach(async () => {
  layer.set('none');
  await child?.kill();
  child = null;
  rmSync(folder, { recursive: true, force: true });
});

async function start(): Promise<ChildStore> {
  child = await startChildStore(file, layer.environment);
  return child;
}

/** All ids that are there; fails when the file or a record is damaged. */
async function storedIds(): Promise<Set<string>> {
  const database = openDatabase(file);
  expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
  database.close();
  const store = openTrajectoryStore({ storage: { kind: 'sqlite', path: file }, retry: false });
  try {
    const heads = await store.list({}, { limit: 100_000, order: 'oldest' });
    const ids = heads.map(({ id }) => id);
    expect((await store.read(ids)).map(({ record }) => record.id)).toEqual(ids);
    return new Set(ids);
  } finally {
    await store.close();
  }
}

async function healthy(store: ChildStore): Promise<void> {
  while ((await store.health()).trouble !== null) await sleep(20);
}

/** Puts records and notes which were acknowledged. */
function writer(store: ChildStore, prefix: string) {
  const acknowledged: string[] = [];
  const put = (at: number): Promise<void> =>
    store.put(makeRecord(`${prefix}${at}`)).then(() => void acknowledged.push(`${prefix}${at}`));
  return { acknowledged, put };
}

test('the disk stalls for two seconds: no ack, no blocked event loop, nothing lost', async () => {
  const store = await start();
  await store.put(makeRecord('before'));
  const usual = await store.longestDelayMs();
  expect(usual).toBeGreaterThan(0);
  layer.set('stall 2000');
  const { acknowledged, put } = writer(store, 'r');
  const puts = [0, 1, 2, 3, 4].map(put);
  await sleep(1000);
  expect(acknowledged).toEqual([]);
  const during = await store.health();
  expect(during.trouble).toContain('waiting for');
  expect(during.waiting).toBe(5);
  // The stall is in the worker: were it in the main thread, this would be two seconds.
  expect(await store.longestDelayMs()).toBeLessThan(1000);
  layer.set('none');
  await Promise.all(puts);
  expect((await store.health()).trouble).toBeNull();
  await store.close();
  child = null;
  expect(await storedIds()).toEqual(new Set(['before', 'r0', 'r1', 'r2', 'r3', 'r4']));
});

test.each(['full', 'readonly'] as const)(
  'a disk that is %s: kept in memory, written when it is well again',
  async (fault) => {
    const store = await start();
    await store.put(makeRecord('before'));
    layer.set(fault);
    const { acknowledged, put } = writer(store, 'r');
    const puts = Array.from({ length: 20 }, (_, at) => put(at));
    while ((await store.health()).trouble === null) await sleep(20);
    await sleep(300);
    expect(acknowledged).toEqual([]);
    expect((await store.health()).waiting).toBe(20);
    layer.set('none');
    await Promise.all(puts);
    await store.addFeedback(feedback('r7', { reward: 1 }));
    await store.kill();
    expect((await storedIds()).size).toBe(21);
  },
);

test('locked by another process: waits and goes on', async () => {
  const store = await start();
  await store.put(makeRecord('before'));
  const script = `const d=new (require('better-sqlite3'))(${JSON.stringify(file)});d.exec('begin immediate');console.log('locked');process.stdin.once('data',()=>{d.exec('commit');process.exit()})`;
  const locker = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(locker.stdout, 'data');
  const { acknowledged, put } = writer(store, 'r');
  const done = put(0);
  while ((await store.health()).trouble === null) await sleep(20);
  expect(acknowledged).toEqual([]);
  locker.stdin.write('\n');
  await done;
  await healthy(store);
});

test('kill -9 under load, again and again: every acknowledged answer and word of feedback is there', async () => {
  const acknowledged: string[] = [];
  const said: string[] = [];
  for (let round = 0; round < 3; round++) {
    const store = await start();
    const load = writer(store, `r${round}-`);
    for (let at = 0; at < 200; at++) {
      void load.put(at).catch(() => {});
      const id = `r${round}-${at}`;
      void store.addFeedback(feedback(id, { reward: 1 })).then(
        (entry) => said.push(entry),
        () => {},
      );
    }
    while (load.acknowledged.length < 20 * (round + 1)) await sleep(1);
    await store.kill();
    acknowledged.push(...load.acknowledged);
    const stored = await storedIds();
    expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
  }
  const database = openDatabase(file, { readonly: true });
  const kept = new Set(database.prepare('select id from feedback').pluck().all());
  database.close();
  expect(said.length).toBeGreaterThan(0);
  expect(said.filter((id) => !kept.has(id))).toEqual([]);
});

test('the power is cut: what was written but not synced is gone, what was acknowledged is not', async () => {
  let taken = 0;
  const acknowledged: string[] = [];
  for (let round = 0; round < 3; round++) {
    const store = await start();
    const load = writer(store, `p${round}-`);
    for (let at = 0; at < 200; at++) void load.put(at).catch(() => {});
    while (load.acknowledged.length < 20 * (round + 1)) await sleep(1);
    // Some of it is under way: written, and not synced for a while.
    layer.set('stall 300');
    await sleep(100);
    await store.kill();
    layer.set('none');
    acknowledged.push(...load.acknowledged);
    taken += layer.cutPower();
    const stored = await storedIds();
    expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
  }
  // The cut did take something: else this would prove nothing.
  expect(taken).toBeGreaterThan(0);
});

test('a folder that cannot be written at the start is found again', async () => {
  layer.set('readonly');
  mkdirSync(join(layer.folder, 'later'));
  file = join(layer.folder, 'later', 'store.db');
  const store = await start();
  const done = store.put(makeRecord('a'));
  while ((await store.health()).trouble === null) await sleep(20);
  layer.set('none');
  expect(await done).toBe(true);
});
