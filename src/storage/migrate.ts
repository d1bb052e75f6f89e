// Brings a room's tables up to date: each step once, all in one transaction, so that a kill leaves the old or the
// new tables and two processes do not run into each other.

import type { Kysely, Transaction } from 'kysely';
import { UnsupportedError } from '../errors.js';
import type { SqlDatabase, StorageSettings } from './database.js';

/** Names of column types that the two databases spell differently. */
export interface ColumnTypes {
  readonly blob: 'blob' | 'bytea';
  /** Whole numbers up to 2^53. */
  readonly bigint: 'integer' | 'bigint';
  readonly double: 'real' | 'double precision';
  /** Grows by itself. */
  readonly serial: 'integer' | 'bigserial';
}

export interface Migration {
  readonly name: string;
  // biome-ignore lint/suspicious/noExplicitAny: the tables of older versions have no types.
  up(transaction: Transaction<any>, types: ColumnTypes): Promise<void>;
}

interface VersionTables {
  schema_versions: { room: string; version: number; name: string; applied_at: number };
}

const TYPES: Readonly<Record<StorageSettings['kind'], ColumnTypes>> = {
  sqlite: { blob: 'blob', bigint: 'integer', double: 'real', serial: 'integer' },
  postgres: { blob: 'bytea', bigint: 'bigint', double: 'double precision', serial: 'bigserial' },
};

/**
 * Runs the steps of `room` that this database has not seen.
 * @throws {UnsupportedError} the tables are of a newer version
 */
export async function migrate<Tables>(
  database: SqlDatabase<Tables>,
  room: string,
  migrations: readonly Migration[],
): Promise<void> {
  if ((await versionOf(database.query, room)) === migrations.length) return;
  await database.write(async (transaction) => {
    const own = transaction as unknown as Transaction<VersionTables>;
    await createVersions(own);
    const done = await versionOf(transaction, room);
    if (done > migrations.length)
      throw new UnsupportedError(
        `the tables of ${room} have version ${done}; this program knows versions up to ${migrations.length}`,
      );
    for (const [index, { name, up }] of migrations.entries()) {
      if (index < done) continue;
      await up(transaction, TYPES[database.kind]);
      const row = { room, version: index + 1, name, applied_at: Date.now() };
      await own.insertInto('schema_versions').values(row).execute();
    }
  });
}

async function createVersions(transaction: Transaction<VersionTables>): Promise<void> {
  await transaction.schema
    .createTable('schema_versions')
    .ifNotExists()
    .addColumn('room', 'text', (column) => column.notNull())
    .addColumn('version', 'integer', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('applied_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('schema_versions_key', ['room', 'version'])
    .execute();
}

/** 0 for tables that were never made. */
async function versionOf<Tables>(query: Kysely<Tables>, room: string): Promise<number> {
  const tables = await query.introspection.getTables();
  if (!tables.some(({ name }) => name === 'schema_versions')) return 0;
  const row = await (query as unknown as Kysely<VersionTables>)
    .selectFrom('schema_versions')
    .select(({ fn }) => fn.max('version').as('version'))
    .where('room', '=', room)
    .executeTakeFirst();
  return row?.version ?? 0;
}
