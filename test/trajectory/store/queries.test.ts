// What retention and the loop ask of the store, on both databases.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { InvalidInputError } from '../../../src/errors.js';
import { connectDatabase, migrate } from '../../../src/storage/index.js';
import { openTrajectoryStore, type StoredHead, type TrajectoryStore } from '../../../src/trajectory/index.js';
import { encodeRecord } from '../../../src/trajectory/store/codec.js';
import { MIGRATIONS } from '../../../src/trajectory/store/migrations.js';
import { lastWords, lastWordsOf } from '../../../src/trajectory/store/queries/feedback.js';
import { listRecords } from '../../../src/trajectory/store/queries/records.js';
import type { StoreTables } from '../../../src/trajectory/store/tables.js';
import { type PostgresServer, startPostgres } from '../../support/postgres-server.js';
import { feedback, makeRecord, notes } from './support.js';

let folder: string;
let postgres: PostgresServer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'searchloop-queries-'));
  postgres = await startPostgres();
});
afterAll(async () => {
  await postgres?.close();
  rmSync(folder, { recursive: true, force: true });
});

describe.each(['sqlite', 'postgres'] as const)('%s', (kind) => {
  let store: TrajectoryStore;
  beforeAll(() => {
    const storage =
      kind === 'sqlite'
        ? { kind, path: join(folder, 'store.db') }
        : { kind, url: postgres.createDatabase('queries') };
    store = openTrajectoryStore({ storage, retry: false });
  });
  afterEach(() => store.delete({}));
  afterAll(() => store.close());

  test('retention by age and by size takes the oldest', async () => {
    for (let at = 0; at < 6; at++) await store.put(makeRecord(`r${at}`, { createdAt: at * 1000 }), notes());
    const left = async () => (await store.list({}, { limit: 100, order: 'oldest' })).map(({ id }) => id);
    expect(await store.prune({ createdBefore: null, maxBytes: null })).toBe(0);
    expect(await store.prune({ createdBefore: 2000, maxBytes: null })).toBe(2);
    expect(await left()).toEqual(['r2', 'r3', 'r4', 'r5']);
    const { recordBytes } = await store.counts();
    expect(await store.prune({ createdBefore: null, maxBytes: Math.ceil(recordBytes / 2) })).toBe(2);
    expect(await left()).toEqual(['r4', 'r5']);
  });

  test('where there is too much the loop\u2019s rollouts go first, then what nobody labelled; labelled answers last', async () => {
    for (const id of ['said', 'compared', 'silent', 'late']) await store.put(makeRecord(id), notes());
    await store.addFeedback(feedback('said', { reward: 1 }));
    await store.addFeedback(feedback('late', { preferredOver: 'compared' }));
    for (const id of ['r1', 'r2']) await store.putRollout(makeRecord(id), notes({ source: 'train' }), 'said');
    const left = async () => (await store.list({}, { limit: 100, order: 'oldest' })).map(({ id }) => id);
    const { recordBytes } = await store.counts();
    const keep = (records: number) =>
      store.prune({ createdBefore: null, maxBytes: Math.ceil((recordBytes * records) / 6) });
    expect(await keep(5)).toBe(1);
    expect(await left()).toEqual(['said', 'compared', 'silent', 'late', 'r2']);
    expect(await keep(3)).toBe(2);
    expect(await left()).toEqual(['said', 'compared', 'late']);
    expect(await keep(1)).toBe(2);
    expect(await left()).toEqual(['late']);
  });

  test('what a key said goes alone, of a time or all of it; its own answers stay, and grades of others do too', async () => {
    for (const id of ['own', 'foreign', 'other']) await store.put(makeRecord(id), notes({ keyId: 'k' }));
    for (const [id, keyId] of [
      ['own', 'k'],
      ['foreign', 'k'],
      ['other', 'another'],
    ] as const)
      await store.addFeedback(feedback(id, { keyId, goldAnswers: ['Paris'] }));
    await store.setGrades(
      ['own', 'foreign', 'other'].map((id) => ({ id, value: 1, source: 'gold', rule: 'x' })),
    );
    expect(await store.deleteFeedback({ keyId: 'k', createdBefore: 1000 })).toMatchObject({ feedback: 0 });
    expect(await store.deleteFeedback({ keyId: 'k' })).toMatchObject({ trajectories: [], feedback: 2 });
    const heads = await store.list({}, { limit: 9, order: 'oldest' });
    expect(heads.map(({ id, grade }) => [id, grade !== null])).toEqual([
      ['own', false],
      ['foreign', false],
      ['other', true],
    ]);
    expect(await store.feedbackOf(['own', 'foreign', 'other'])).toMatchObject([{ keyId: 'another' }]);
  });

  test('what somebody had deleted is known by its id, answers and what was said; what grew old is not', async () => {
    for (const id of ['a', 'b', 'c']) await store.put(makeRecord(id, { createdAt: 5000 }), notes());
    const said = async (id: string, keyId: string) =>
      (await store.addFeedback(feedback(id, { keyId, reward: 1 }))).entry.id;
    const words = [await said('b', 'k'), await said('b', 'another'), await said('c', 'k')];
    await store.put(makeRecord('old', { createdAt: 1000 }), notes());
    await store.prune({ createdBefore: 2000, maxBytes: null });
    await store.delete({ ids: ['a'] });
    await store.deleteFeedback({ keyId: 'k' });
    const gone = await store.deletedAmong(['a', 'b', 'c', 'old', ...words]);
    expect(gone.sort()).toEqual(['a', words[0], words[2]].sort());
    await store.put(makeRecord('a'), notes());
    expect(await store.deletedAmong(['a'])).toEqual([]);
  });

  test('lists without a source, from a place counted from the end', async () => {
    for (const id of ['a', 'b', 'c', 'd'])
      await store.put(makeRecord(id), notes({ source: id === 'b' ? 'train' : 'serve' }));
    const ids = async (skip: number) =>
      (await store.list({ notSource: 'train' }, { order: 'newest', limit: 2, skip })).map(({ id }) => id);
    expect(await ids(0)).toEqual(['d', 'c']);
    expect(await ids(1)).toEqual(['c', 'a']);
    expect(await ids(3)).toEqual([]);
  });

  test('how many searches of an answer failed stands in its head; of older ones nobody knows', async () => {
    await store.put(makeRecord('sound'), notes());
    await store.put(makeRecord('met', { searchError: 'the engine is away' }), notes());
    const page = { limit: 9, order: 'oldest' } as const;
    const said = async (heads: Promise<StoredHead[]>) =>
      (await heads).map(({ id, failedSearches }) => [id, failedSearches]);
    expect(await said(store.list({}, page))).toEqual([
      ['sound', 0],
      ['met', 1],
    ]);
    const older = await connectDatabase<StoreTables>(
      kind === 'sqlite'
        ? { kind, path: join(folder, 'older.db') }
        : { kind, url: postgres.createDatabase('older') },
    );
    try {
      const before = MIGRATIONS.findIndex(({ name }) => name === 'failed searches');
      await migrate(older, 'trajectory', MIGRATIONS.slice(0, before));
      const { failed_searches: _none, ...head } = encodeRecord(makeRecord('old'), notes()).head;
      const row = { ...head, stored_at: 1, audit_state: 'clean' } as const;
      await older.query.insertInto('trajectories').values(row).execute();
      await migrate(older, 'trajectory', MIGRATIONS);
      expect(await said(listRecords(older.query, {}, page))).toEqual([['old', null]]);
      const tables = (await older.query.introspection.getTables()).map(({ name }) => name);
      expect(tables).toContain('adapter_members');
      expect(tables.filter((name) => name.startsWith('batch'))).toEqual([]);
    } finally {
      await older.close();
    }
  });

  test('texts are those of the record, whole, without its tokens', async () => {
    const question = `why ${'so '.repeat(400)}?`;
    const messages = [{ role: 'user', content: question }];
    await store.put(makeRecord('a', { question, answer: 'because \0' }), notes({ messages }));
    expect(await store.texts(['a', 'gone'])).toEqual([{ id: 'a', question, answer: 'because \0', messages }]);
  });

  test('the line of a version ends where it is told to, and a ring ends too', async () => {
    for (const id of ['x', 'y']) await store.put(makeRecord(id), notes());
    const made = (digest: string, parentDigest: string | null, trajectoryIds: string[] = []) =>
      store.commitStep({
        adapter: { digest, parentDigest, receipt: { of: digest } },
        trajectoryIds,
        documents: {},
      });
    await made('v1', 'base', ['x']);
    await made('v2', 'v1', ['x', 'y']);
    await made('other', 'v1');
    await made('v3', 'v2', ['y']);
    const line = async (version: string, ...until: string[]) =>
      (await store.lineOf(version, until)).map(({ digest, trajectoryIds }) => [digest, ...trajectoryIds]);
    expect(await line('v3')).toEqual([
      ['v3', 'y'],
      ['v2', 'x', 'y'],
      ['v1', 'x'],
    ]);
    expect(await line('v3', 'v1', 'base')).toEqual([
      ['v3', 'y'],
      ['v2', 'x', 'y'],
    ]);
    expect(await line('v3', 'v3')).toEqual([]);
    expect(await line('unknown')).toEqual([]);
    expect(await store.adapterHeads()).toEqual(
      (await store.adapters()).map(({ trajectoryIds: _ids, ...head }) => head),
    );
    await made('r1', 'r2');
    await made('r2', 'r1');
    expect(await line('r2')).toEqual([['r2'], ['r1']]);
  });

  test('the last word of each key and kind is all that labels need', async () => {
    for (const id of ['a', 'b', 'c']) await store.put(makeRecord(id), notes());
    const say = async (id: string, changes: object) =>
      (await store.addFeedback(feedback(id, changes))).entry.id;
    await say('a', { reward: 0 });
    const gold = await say('a', { goldAnswers: ['Paris'] });
    const rated = await say('a', { rating: 1, comment: 'better' });
    await say('a', { goldAnswers: [] });
    await say('a', { preferredOver: 'b', comment: 'first' });
    const overB = await say('a', { preferredOver: 'b' });
    const overC = await say('a', { preferredOver: 'c' });
    const other = await say('a', { keyId: 'other', reward: 0.5, goldAnswers: ['Lyon'] });
    const ofB = await say('b', { reward: 1 });
    await say('b', { comment: 'hm' });
    const ids = (await store.lastWordsOf(['a', 'b', 'c'])).map(({ id }) => id);
    expect(ids).toEqual([gold, rated, overB, overC, other, ofB]);
    expect(await store.lastWordsOf([])).toEqual([]);
  });

  test('a key that repeats what it said last adds nothing, and cannot go on for ever', async () => {
    for (const id of ['a', 'b']) await store.put(makeRecord(id), notes());
    const say = (id: string, reward: number, keyId = 'k') =>
      store.addFeedback(feedback(id, { reward, keyId }));
    const first = await say('a', 1);
    expect(await say('a', 1)).toEqual({ entry: first.entry, repeated: true });
    expect(await say('b', 1)).toMatchObject({ repeated: false });
    expect(await say('a', 1, 'other')).toMatchObject({ repeated: false });
    // What was said before something else is said anew.
    expect(await say('a', 0)).toMatchObject({ repeated: false });
    expect(await say('a', 1)).toMatchObject({ repeated: false });
    for (let i = 3; i < 100; i++) await say('a', (i + 1) % 2);
    await expect(say('a', 1)).rejects.toThrow(InvalidInputError);
    await expect(say('a', 1)).rejects.toThrow('at most 100 entries of one key');
    expect(await store.feedbackOf(['a'])).toHaveLength(101);
    expect(await say('a', 0.5, 'third')).toMatchObject({ repeated: false });
  });
});

test('PostgreSQL looks the last words of some answers up, however many others were given', async () => {
  const database = await connectDatabase<StoreTables>({
    kind: 'postgres',
    url: postgres.createDatabase('plan'),
  });
  try {
    await migrate(database, 'trajectory', MIGRATIONS);
    await database.write(async (transaction) => {
      // Answers are of no account here.
      await sql`set local session_replication_role = replica`.execute(transaction);
      await sql`insert into feedback (id, trajectory_id, created_at, key_id, role, request_digest, reward)
        select 'f' || n, 't' || n / 2, 0, 'key', 'feedback', '', 1 from generate_series(1, 40000) n`.execute(
        transaction,
      );
    });
    await sql`analyze feedback`.execute(database.query);
    const ids = Array.from({ length: 200 }, (_, i) => `t${90 * i}`);
    const plan = JSON.stringify(await lastWords(database.query, ids).explain());
    expect(plan).toContain('feedback_trajectory_id');
    expect(plan).not.toContain('Seq Scan');
    expect(await lastWordsOf(database.query, ['t7'])).toMatchObject([{ id: 'f15', trajectoryId: 't7' }]);
  } finally {
    await database.close();
  }
});
