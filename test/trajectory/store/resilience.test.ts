// The thread dies, the server goes away, the clock jumps, the queue fills up.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BroadcastChannel } from 'node:worker_threads';
import { UnavailableError } from '../../../src/errors.js';
import { openDatabase } from '../../../src/storage/index.js';
import { labelOf, openTrajectoryStore, type TrajectoryStore } from '../../../src/trajectory/index.js';
import { startPostgres } from '../../support/postgres-server.js';
import { startProxy } from '../../support/tcp-proxy.js';
import { feedback, MODEL, makeRecord, notes, TOKENIZER } from './support.js';

jest.setTimeout(180_000);

let folder: string;
let store: TrajectoryStore | null = null;
const path = () => join(folder, 'store.db');
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'searchloop-resilience-'));
});
afterEach(async () => {
  jest.restoreAllMocks();
  await store?.close();
  store = null;
  rmSync(folder, { recursive: true, force: true });
});

const puts = (to: TrajectoryStore, prefix: string, count: number): Promise<boolean>[] =>
  Array.from({ length: count }, (_, at) => to.put(makeRecord(`${prefix}${at}`), notes()));

test('the worker is killed, again and again: what waited is written by the next one, once, and audited', async () => {
  const troubles: Error[] = [];
  const opened = openTrajectoryStore({
    storage: { kind: 'sqlite', path: path() },
    worker: join(__dirname, 'dying-worker.mjs'),
    onTrouble: (error) => troubles.push(error),
  });
  store = opened;
  await opened.useAuditor({ modelDigest: MODEL, tokenizer: TOKENIZER });
  const killer = new BroadcastChannel('dying-worker');
  try {
    for (let round = 0; round < 3; round++) {
      const waiting = puts(opened, `r${round}-`, 50);
      killer.postMessage('die');
      await Promise.all(waiting);
    }
  } finally {
    killer.close();
  }
  expect(troubles.length).toBeGreaterThan(0);
  const heads = await opened.list({}, { limit: 1000, order: 'oldest' });
  expect(heads).toHaveLength(150);
  expect(new Set(heads.map(({ auditState }) => auditState))).toEqual(new Set(['clean']));
});

test('PostgreSQL crashes and comes back: what waited is written, what was acknowledged is there', async () => {
  const server = await startPostgres();
  try {
    const opened = openTrajectoryStore({ storage: { kind: 'postgres', url: server.url } });
    store = opened;
    await Promise.all(puts(opened, 'before', 5));
    await server.kill();
    const waiting = puts(opened, 'during', 5);
    while (opened.health().trouble === null) await sleep(20);
    await server.start();
    await Promise.all(waiting);
    expect(opened.health().trouble).toBeNull();
    expect(await opened.list({}, { limit: 100, order: 'oldest' })).toHaveLength(10);
  } finally {
    await store?.close();
    store = null;
    await server.close();
  }
});

test('PostgreSQL vanishes in the middle of a write without a word: the write is made over a new connection', async () => {
  const server = await startPostgres();
  const proxy = await startProxy(server.socket);
  try {
    const url = `postgres://postgres@127.0.0.1:${proxy.port}/postgres`;
    const timeouts = { statementMs: 700, answerMs: 1000 };
    const opened = openTrajectoryStore({ storage: { kind: 'postgres', url, timeouts } });
    store = opened;
    await opened.put(makeRecord('before'), notes());
    proxy.swallowFrom('insert into "trajectories"');
    await opened.put(makeRecord('during'), notes());
    expect(proxy.swallowed).toBe(1);
    expect(opened.health().trouble).toBeNull();
    const heads = await opened.list({}, { limit: 100, order: 'oldest' });
    expect(heads.map(({ id }) => id)).toEqual(['before', 'during']);
    // PgBouncer refuses whatever else a session begins with.
    for (const names of proxy.startParameters)
      expect(['user', 'database', 'client_encoding']).toEqual(expect.arrayContaining(names));
  } finally {
    await store?.close();
    store = null;
    await proxy.close();
    await server.close();
  }
});

test('the reply to a deletion is lost with the worker: the next one still names the adapters', async () => {
  const opened = openTrajectoryStore({
    storage: { kind: 'sqlite', path: path() },
    worker: join(__dirname, 'dying-worker.mjs'),
    retry: false,
  });
  store = opened;
  await opened.put(makeRecord('a'), notes());
  await opened.commitStep({
    adapter: { digest: 'v1', parentDigest: null, receipt: null },
    trajectoryIds: ['a'],
    documents: {},
  });
  const dying = new BroadcastChannel('dying-worker');
  try {
    await new Promise((resolve) => {
      dying.onmessage = resolve;
      dying.postMessage('die before the next reply');
    });
    const report = await opened.delete({ ids: ['a'] });
    expect(report).toMatchObject({ trajectories: ['a'], adapters: [{ digest: 'v1', records: 1 }] });
  } finally {
    dying.close();
  }
});

test('the clock is set back: order, last word and idempotency hold', async () => {
  const opened = openTrajectoryStore({ storage: { kind: 'sqlite', path: path() }, retry: false });
  store = opened;
  const clock = jest.spyOn(Date, 'now');
  clock.mockReturnValue(2_000_000_000_000);
  await opened.put(makeRecord('first', { createdAt: Date.now() }), notes());
  await opened.addFeedback(feedback('first', { reward: 1 }));
  clock.mockReturnValue(1_000_000_000_000);
  await opened.put(makeRecord('second', { createdAt: Date.now() }), notes());
  await opened.addFeedback(feedback('first', { reward: -1, idempotencyKey: 'k' }));
  expect((await opened.addFeedback(feedback('first', { reward: -1, idempotencyKey: 'k' }))).repeated).toBe(
    true,
  );
  const ids = (await opened.list({}, { limit: 9, order: 'oldest' })).map(({ id }) => id);
  expect(ids).toEqual(['first', 'second']);
  expect(labelOf(await opened.feedbackOf(['first']))).toMatchObject({ reward: { value: -1 } });
  expect(opened.health().trouble).toBeNull();
});

test('too much waits: more is refused at once, what waits is not lost', async () => {
  const opened = openTrajectoryStore({ storage: { kind: 'sqlite', path: path() }, queueBytes: 50_000 });
  store = opened;
  await opened.put(makeRecord('first'), notes());
  const locker = openDatabase(path());
  locker.exec('begin immediate');
  const results = puts(opened, 'r', 100).map((put) =>
    put.then(
      () => true,
      (error) => error as Error,
    ),
  );
  while (opened.health().trouble === null) await sleep(20);
  const { waiting, refused } = opened.health();
  expect(refused).toBeGreaterThan(0);
  expect(waiting + refused).toBe(100);
  locker.exec('commit');
  locker.close();
  const settled = await Promise.all(results);
  expect(settled.filter((item) => item instanceof UnavailableError)).toHaveLength(refused);
  expect(await opened.list({}, { limit: 1000, order: 'oldest' })).toHaveLength(1 + waiting);
});

test('what is said of answers waits by its length too, alone or with its record', async () => {
  const opened = openTrajectoryStore({ storage: { kind: 'sqlite', path: path() }, queueBytes: 50_000 });
  store = opened;
  await opened.put(makeRecord('first'), notes());
  const long = 'é'.repeat(10_000);
  const said = Array.from({ length: 3 }, (_, at) =>
    opened.addFeedback(feedback('first', { comment: long, idempotencyKey: `${at}` })),
  );
  expect(opened.health()).toMatchObject({ waiting: 2, refused: 1 });
  expect((await Promise.allSettled(said)).map(({ status }) => status)).toEqual([
    'fulfilled',
    'fulfilled',
    'rejected',
  ]);
  const goldAnswers = [long, long, long];
  const put = opened.put(makeRecord('second'), notes(), feedback('second', { goldAnswers }));
  await expect(put).rejects.toThrow(UnavailableError);
});

test('closing writes what waits; afterwards nothing is taken', async () => {
  const storage = { kind: 'sqlite', path: path() } as const;
  const opened = openTrajectoryStore({ storage });
  const waiting = puts(opened, 'r', 20);
  await opened.close();
  await Promise.all(waiting);
  await expect(opened.put(makeRecord('late'), notes())).rejects.toThrow(UnavailableError);
  await expect(opened.keys()).rejects.toThrow(UnavailableError);
  store = openTrajectoryStore({ storage, retry: false });
  expect(await store.list({}, { limit: 100, order: 'oldest' })).toHaveLength(20);
});

test('tables of a newer version are left alone', async () => {
  const storage = { kind: 'sqlite', path: path() } as const;
  const first = openTrajectoryStore({ storage, retry: false });
  await first.put(makeRecord('a'), notes());
  await first.close();
  const database = openDatabase(path());
  database.exec("insert into schema_versions values ('trajectory', 99, 'future', 0)");
  database.close();
  store = openTrajectoryStore({ storage, retry: false });
  await expect(store.put(makeRecord('b'), notes())).rejects.toThrow('version 99');
  await expect(store.list({}, { limit: 1, order: 'oldest' })).rejects.toThrow('version 99');
});

test('deleted text is not in the file any more', async () => {
  const secret = 'a-very-private-word';
  const storage = { kind: 'sqlite', path: path() } as const;
  store = openTrajectoryStore({ storage, retry: false });
  await store.put(
    makeRecord('a', { question: secret }),
    notes({ messages: [{ role: 'user', content: secret }] }),
  );
  const { readFileSync } = await import('node:fs');
  const bytes = () => Buffer.concat([path(), `${path()}-wal`].map((file) => readFileSync(file)));
  expect(bytes().includes(secret)).toBe(true);
  await store.delete({ ids: ['a'] });
  expect(bytes().includes(secret)).toBe(false);
});
