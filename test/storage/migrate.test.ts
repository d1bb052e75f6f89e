import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import {
  connectDatabase,
  isStatementFault,
  type Migration,
  migrate,
  type SqlDatabase,
} from '../../src/storage/index.js';
import { type PostgresServer, startPostgres } from '../support/postgres-server.js';

type Tables = { things: { id: string; size: number | null } };

let folder: string;
let postgres: PostgresServer;
let database: SqlDatabase<Tables>;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'searchloop-migrate-'));
  postgres = await startPostgres();
}, 120_000);
afterAll(async () => {
  await postgres?.close();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(() => database.close());

const first: Migration = {
  name: 'first',
  up: ({ schema }) =>
    schema
      .createTable('things')
      .addColumn('id', 'text', (column) => column.notNull().unique())
      .execute(),
};
const second: Migration = {
  name: 'second',
  up: async ({ schema }, { bigint }) => {
    await schema.alterTable('things').addColumn('size', bigint).execute();
  },
};
const broken: Migration = {
  name: 'broken',
  up: async ({ schema }) => {
    await schema.createTable('half').addColumn('id', 'text').execute();
    throw new Error('killed here');
  },
};

let count = 0;
describe.each(['sqlite', 'postgres'] as const)('%s', (kind) => {
  const open = (name: string): Promise<SqlDatabase<Tables>> =>
    connectDatabase(
      kind === 'sqlite'
        ? { kind, path: join(folder, `${name}.db`) }
        : { kind, url: postgres.createDatabase(name) },
    );
  const tables = async () =>
    (await database.query.introspection.getTables())
      .map(({ name }) => name)
      .filter((name) => !name.startsWith('sqlite'));

  test('each step once, later ones when they come', async () => {
    database = await open(`m${count++}`);
    await migrate(database, 'room', [first]);
    await migrate(database, 'room', [first, second]);
    await migrate(database, 'room', [first, second]);
    await database.query
      .insertInto('things')
      .values({ id: 'b', size: 2 ** 40 })
      .execute();
    const { rows } = await sql<{ total: number }>`select sum(size) as total from things`.execute(
      database.query,
    );
    expect(rows[0]?.total).toBe(2 ** 40);
    await expect(migrate(database, 'room', [first])).rejects.toThrow('version 2');
  });

  test('a step that fails leaves nothing behind', async () => {
    database = await open(`m${count++}`);
    await expect(migrate(database, 'room', [first, broken])).rejects.toThrow('killed here');
    expect(await tables()).toEqual([]);
    await migrate(database, 'room', [first]);
    expect(await tables()).toContain('things');
  });

  test('whose fault an error is', async () => {
    database = await open(`m${count++}`);
    await migrate(database, 'room', [first, second]);
    const insert = (id: unknown) =>
      database
        .write((transaction) =>
          transaction
            .insertInto('things')
            .values({ id: id as string, size: 1 })
            .execute(),
        )
        .then(
          () => null,
          (error: unknown) => isStatementFault(error),
        );
    expect(await insert('a')).toBe(null);
    // A constraint.
    expect(await insert('a')).toBe(true);
    expect(await insert(null)).toBe(true);
    await sql`drop table things`.execute(database.query);
    // A missing table is in everybody's way.
    expect(await insert('b')).toBe(false);
    expect(isStatementFault(new Error('no code'))).toBe(false);
    expect(isStatementFault(Object.assign(new Error(), { code: 'SQLITE_FULL' }))).toBe(false);
    expect(isStatementFault(Object.assign(new Error(), { code: 'ECONNREFUSED' }))).toBe(false);
  });

  test('a failed transaction leaves nothing behind', async () => {
    database = await open(`m${count++}`);
    await migrate(database, 'room', [first, second]);
    await expect(
      database.write(async (transaction) => {
        await transaction.insertInto('things').values({ id: 'a', size: 1 }).execute();
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    expect(await database.query.selectFrom('things').selectAll().execute()).toEqual([]);
    expect(await database.sizeBytes()).toBeGreaterThan(0);
  });
});

test('PostgreSQL: writers take turns, so that what a follower has passed never appears behind it', async () => {
  const url = postgres.createDatabase('turns');
  database = await connectDatabase({ kind: 'postgres', url });
  const other = await connectDatabase<Tables>({ kind: 'postgres', url });
  try {
    await Promise.all([migrate(database, 'room', [first, second]), migrate(other, 'room', [first, second])]);
    const order: string[] = [];
    let begun = (): void => {};
    const holds = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const slow = database.write(async (transaction) => {
      begun();
      await new Promise((resolve) => setTimeout(resolve, 200));
      await transaction.insertInto('things').values({ id: 'slow', size: 1 }).execute();
      order.push('slow');
    });
    await holds;
    const quick = other.write(async (transaction) => {
      // What was written before is there already.
      expect(await transaction.selectFrom('things').select('id').execute()).toEqual([{ id: 'slow' }]);
      order.push('quick');
    });
    await Promise.all([slow, quick]);
    expect(order).toEqual(['slow', 'quick']);
  } finally {
    await other.close();
  }
});

test('PostgreSQL: a step takes as long as it takes; who starts meanwhile is told, then finds it done', async () => {
  const timeouts = { statementMs: 300, answerMs: 400 };
  const settings = { kind: 'postgres', url: postgres.createDatabase('large'), timeouts } as const;
  database = await connectDatabase(settings);
  const other = await connectDatabase<Tables>(settings);
  const runs: string[] = [];
  const slow = (who: string): Migration => ({
    name: 'slow',
    up: async (transaction) => {
      runs.push(who);
      await sql`select pg_sleep(1.2)`.execute(transaction);
      await first.up(transaction, { blob: 'bytea', bigint: 'bigint', double: 'real', serial: 'bigserial' });
    },
  });
  try {
    const [mine, theirs] = await Promise.allSettled([
      migrate(database, 'room', [slow('one')]),
      migrate(other, 'room', [slow('other')]),
    ]);
    const reasons = [mine, theirs].map((ended) => (ended.status === 'rejected' ? ended.reason : null));
    expect(reasons).toContain(null);
    expect(reasons.find((reason) => reason !== null)).toMatchObject({
      name: 'UnavailableError',
      message: expect.stringContaining('another process has held the tables for over 0.3 s'),
    });
    await Promise.all([database, other].map((each) => migrate(each, 'room', [slow('again')])));
    expect(runs).toHaveLength(1);
    // Writes keep their limit.
    const sleeps = database.write((transaction) => sql`select pg_sleep(1.2)`.execute(transaction));
    await expect(sleeps).rejects.toThrow('statement timeout');
  } finally {
    await other.close();
  }
});
