// Two servers write into one PostgreSQL, and a loop follows by number: a record that gets its number early and is committed late
// would be passed, and heard of after a restart only.

import { setTimeout as sleep } from 'node:timers/promises';
import { LabelIndex } from '../../../src/loop/online/labels.js';
import { connectDatabase, type SqlDatabase } from '../../../src/storage/index.js';
import { openTrajectoryStore, type TrajectoryStore } from '../../../src/trajectory/index.js';
import { encodeRecord } from '../../../src/trajectory/store/codec.js';
import { insertRecord } from '../../../src/trajectory/store/queries/records.js';
import type { StoreTables } from '../../../src/trajectory/store/tables.js';
import { type PostgresServer, startPostgres } from '../../support/postgres-server.js';
import { makeRecord, notes } from '../../trajectory/store/support.js';

let postgres: PostgresServer;
const stores: TrajectoryStore[] = [];
let slow: SqlDatabase<StoreTables> | null = null;
beforeAll(async () => {
  postgres = await startPostgres();
}, 120_000);
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  await slow?.close();
  slow = null;
});
afterAll(() => postgres?.close());

function storeAt(url: string): TrajectoryStore {
  const store = openTrajectoryStore({ storage: { kind: 'postgres', url } });
  stores.push(store);
  return store;
}
const following = (store: TrajectoryStore) =>
  new LabelIndex(store, { reserved: new Set(), withUnlabelled: true });
const knownTo = (labels: LabelIndex): string[] => labels.unlabelled().map(({ head }) => head.id);

test('who has a number keeps others from a later one until it is committed', async () => {
  const url = postgres.createDatabase('late');
  const [other, read] = [storeAt(url), storeAt(url)];
  await other.put(makeRecord('first'), notes());
  const labels = following(read);
  await labels.refresh();
  slow = await connectDatabase<StoreTables>({ kind: 'postgres', url });
  let numbered = (): void => {};
  let commit = (): void => {};
  const hasNumber = new Promise<void>((resolve) => {
    numbered = resolve;
  });
  const mayCommit = new Promise<void>((resolve) => {
    commit = resolve;
  });
  const late = slow.write(async (transaction) => {
    const encoded = encodeRecord(makeRecord('late'), notes());
    await insertRecord(transaction, encoded, { state: 'clean', faults: [] }, Date.now());
    numbered();
    await mayCommit;
  });
  await hasNumber;
  const quick = other.put(makeRecord('quick'), notes());
  await Promise.race([quick, sleep(500)]);
  await labels.refresh();
  commit();
  await Promise.all([late, quick]);
  await labels.refresh();
  expect(knownTo(labels)).toEqual(['first', 'late', 'quick']);
});

test('two that write as fast as they can, and rollouts between: nothing is passed', async () => {
  const url = postgres.createDatabase('fast');
  const writers = [storeAt(url), storeAt(url)];
  const labels = following(storeAt(url));
  let isDone = false;
  const written = Promise.all(
    writers.map(async (store, who) => {
      for (let round = 0; round < 12; round++)
        await Promise.all(
          Array.from({ length: 1 + (round % 5) }, (_, at) =>
            store.put(
              makeRecord(`${who}-${round}-${at}`),
              notes({ source: (round + at) % 3 === 0 ? 'train' : 'serve' }),
            ),
          ),
        );
    }),
  ).finally(() => {
    isDone = true;
  });
  while (!isDone) await labels.refresh();
  await written;
  await labels.refresh();
  const heads = await (stores[0] as TrajectoryStore).list(
    { notSource: 'train' },
    { limit: 999, order: 'oldest' },
  );
  expect(heads.length).toBeGreaterThan(20);
  expect(knownTo(labels).sort()).toEqual(heads.map(({ id }) => id).sort());
});
