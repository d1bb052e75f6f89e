// What a deletion reports, whatever comes after its commit.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectDatabase, migrate, openDatabase, type SqlDatabase } from '../../../src/storage/index.js';
import { applyWrites } from '../../../src/trajectory/store/apply.js';
import { createRecordAudit } from '../../../src/trajectory/store/auditing.js';
import { encodeRecord } from '../../../src/trajectory/store/codec.js';
import { deletionOrder } from '../../../src/trajectory/store/deletion-order.js';
import type { Write, WriteOutcome, Writes } from '../../../src/trajectory/store/messages.js';
import { MIGRATIONS } from '../../../src/trajectory/store/migrations.js';
import { readDocument } from '../../../src/trajectory/store/queries/lineage.js';
import type { StoreTables } from '../../../src/trajectory/store/tables.js';
import { makeRecord, notes } from './support.js';

const SECRET = 'a-very-private-word';
const audit = createRecordAudit(null);
let folder: string;
let path: string;
let database: SqlDatabase<StoreTables>;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'searchloop-apply-'));
  path = join(folder, 'store.db');
  database = await connectDatabase<StoreTables>({ kind: 'sqlite', path });
  await migrate(database, 'trajectory', MIGRATIONS);
  await apply('record', {
    encoded: encodeRecord(makeRecord('a', { question: SECRET }), notes({ userKey: 'ada' })),
    feedback: null,
    origin: null,
  });
  await apply('step', {
    adapter: { digest: 'v1', parentDigest: null, receipt: null },
    trajectoryIds: ['a'],
    documents: {},
  });
});
afterEach(async () => {
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

async function apply<K extends keyof Writes>(
  kind: K,
  params: Writes[K][0],
  to: SqlDatabase<StoreTables> = database,
): Promise<WriteOutcome> {
  const [outcome] = await applyWrites(to, audit, [{ kind, params, at: Date.now() } as Write]);
  return outcome as WriteOutcome;
}

const isThere = (): boolean => [path, `${path}-wal`].some((file) => readFileSync(file).includes(SECRET));

const DELETED = {
  trajectories: ['a'],
  feedback: 0,
  adapters: [{ digest: 'v1', records: 1 }],
};

test('a store from before rollouts knew their origin is taken over as it is', async () => {
  const older = await connectDatabase<StoreTables>({ kind: 'sqlite', path: join(folder, 'older.db') });
  try {
    await migrate(older, 'trajectory', MIGRATIONS.slice(0, 4));
    const {
      origin_id: _none,
      failed_searches: _neither,
      ...head
    } = encodeRecord(makeRecord('a'), notes()).head;
    const row = { ...head, stored_at: 1, audit_state: 'clean' } as const;
    await older.query.insertInto('trajectories').values(row).execute();
    await migrate(older, 'trajectory', MIGRATIONS);
    const found = await older.query.selectFrom('trajectories').select(['id', 'origin_id']).execute();
    expect(found).toEqual([{ id: 'a', origin_id: null }]);
  } finally {
    await older.close();
  }
});

test('a log that cannot be cleared costs no report, and is cleared with the next write', async () => {
  const tries: boolean[] = [];
  let isBroken = true;
  const faulty: SqlDatabase<StoreTables> = {
    ...database,
    scrub(waits) {
      tries.push(waits);
      if (isBroken) throw new Error('database is locked');
      database.scrub(waits);
    },
  };
  const outcome = await apply('delete', deletionOrder({ userKey: 'ada' }), faulty);
  expect(outcome).toEqual({ ok: true, result: { ...DELETED, leftovers: 'database is locked' } });
  expect(isThere()).toBe(true);
  isBroken = false;
  await apply('documents', { documents: { other: 1 } }, faulty);
  expect(isThere()).toBe(false);
  await apply('documents', { documents: { other: 2 } }, faulty);
  // No write of anybody's waits for it.
  expect(tries).toEqual([true, false]);
});

test('a reader in the way is told of, and its text goes when it has gone', async () => {
  const reader = openDatabase(path);
  reader.exec('begin');
  reader.prepare('select count(*) from trajectories').get();
  const outcome = await apply('delete', deletionOrder({ ids: ['a'] }));
  expect(outcome).toMatchObject({ ok: true, result: { ...DELETED, leftovers: expect.any(String) } });
  reader.exec('commit');
  reader.close();
  await apply('documents', { documents: { other: 1 } });
  expect(isThere()).toBe(false);
});

test('a deletion whose reply was lost gives its report again; another one finds nothing', async () => {
  const order = deletionOrder({ userKey: 'ada' });
  const first = await apply('delete', order);
  expect(first).toEqual({ ok: true, result: { ...DELETED, leftovers: null } });
  expect(await apply('delete', order)).toEqual(first);
  expect(await apply('delete', deletionOrder({ userKey: 'ada' }))).toMatchObject({
    ok: true,
    result: { trajectories: [], adapters: [] },
  });
  // Nobody came back for it: it goes with a deletion a day later.
  const day = 86_400_000;
  const late = { kind: 'delete', params: deletionOrder({ ids: ['b'] }), at: Date.now() + 2 * day } as const;
  await applyWrites(database, audit, [late]);
  expect(await readDocument(database.query, order.report)).toBeNull();
});
