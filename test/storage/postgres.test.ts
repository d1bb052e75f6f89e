// Databases that are not ours alone: other schemas, settings in the address.

import { sql } from 'kysely';
import { connectDatabase, type Migration, migrate, type SqlDatabase } from '../../src/storage/index.js';
import { type PostgresServer, startPostgres } from '../support/postgres-server.js';

let postgres: PostgresServer;
let database: SqlDatabase<unknown>;
beforeAll(async () => {
  postgres = await startPostgres();
}, 120_000);
afterAll(() => postgres?.close());
afterEach(() => database.close());

const things: Migration = {
  name: 'things',
  up: ({ schema }) => schema.createTable('things').addColumn('id', 'text').execute(),
};
const run = (text: string) => sql.raw<Record<string, unknown>>(text).execute(database.query);
const countOf = async (table: string): Promise<number> =>
  Number((await run(`select count(*) as count from ${table}`)).rows[0]?.['count']);

test('another application has a table of versions in a schema of its own', async () => {
  database = await connectDatabase({ kind: 'postgres', url: postgres.createDatabase('shared') });
  await run('create schema other');
  await run('create table other.schema_versions (number integer)');
  await migrate(database, 'room', [things]);
  await migrate(database, 'room', [things]);
  expect(await countOf('public.schema_versions')).toBe(1);
  expect(await countOf('other.schema_versions')).toBe(0);
});

test('ours lie in the schema that the address names, though the one behind it has such tables too', async () => {
  const url = postgres.createDatabase('named');
  database = await connectDatabase({ kind: 'postgres', url });
  await run('create schema "O\'wn"');
  await run('create table public.schema_versions (number integer)');
  await database.close();
  const options = encodeURIComponent('-c search_path="O\'wn",public');
  database = await connectDatabase({ kind: 'postgres', url: `${url}&options=${options}` });
  await migrate(database, 'room', [things]);
  await migrate(database, 'room', [things]);
  expect(await countOf('"O\'wn".schema_versions')).toBe(1);
  expect(await countOf('"O\'wn".things')).toBe(0);
});

test('an address cannot take the promise back that what was committed is on disk', async () => {
  const options = encodeURIComponent('-c synchronous_commit=off -c statement_timeout=0');
  const url = `${postgres.createDatabase('hasty')}&options=${options}`;
  database = await connectDatabase({ kind: 'postgres', url });
  const names = ['synchronous_commit', 'statement_timeout', 'idle_in_transaction_session_timeout'];
  const settings = await database.write(async (transaction) => {
    const shown: unknown[] = [];
    for (const name of names) {
      const { rows } = await sql.raw<Record<string, unknown>>(`show ${name}`).execute(transaction);
      shown.push(rows[0]?.[name]);
    }
    return shown;
  });
  expect(settings).toEqual(['on', '1min', '1min']);
});
