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
  sqlite_master: { type: string; name: string };
}

type Kind = StorageSettings['kind'];

const TYPES: Readonly<Record<Kind, ColumnTypes>> = {
  sqlite: { blob: 'blob', bigint: 'integer', double: 'real', serial: 'integer' },
  postgres: { blob: 'bytea', bigint: 'bigint', double: 'double precision', serial: 'bigserial' },
};

/**
 * Runs the steps of `room` that this database has not seen.
 * @throws {UnsupportedError} the tables are of a newer version
 * @throws {UnavailableError} another process holds the tables: it may be at the same
 */
export async function migrate<Tables>(
  database: SqlDatabase<Tables>,
  room: string,
  migrations: readonly Migration[],
): Promise<void> {
  const { kind } = database;
  if ((await versionOf(database.query, kind, room)) === migrations.length) return;
  await database.writeUnlimited(async (transaction) => {
    const own = transaction as unknown as Transaction<VersionTables>;
    await createVersions(own);
    const done = await versionOf(transaction, kind, room);
    if (done > migrations.length)
      throw new UnsupportedError(
        `the tables of ${room} have version ${done}; this program knows versions up to ${migrations.length}`,
      );
    for (const [index, { name, up }] of migrations.entries()) {
      if (index < done) continue;
      await up(transaction, TYPES[kind]);
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
async function versionOf<Tables>(database: Kysely<Tables>, kind: Kind, room: string): Promise<number> {
  const query = database as unknown as Kysely<VersionTables>;
  if (!(await hasVersions(query, kind))) return 0;
  const row = await query
    .selectFrom('schema_versions')
    .select(({ fn }) => fn.max('version').as('version'))
    .where('room', '=', room)
    .executeTakeFirst();
  return row?.version ?? 0;
}

/** Looks where the table would be made: other schemas are other applications'. */
async function hasVersions(query: Kysely<VersionTables>, kind: Kind): Promise<boolean> {
  if (kind === 'sqlite') {
    const named = query.selectFrom('sqlite_master').select('name').where('type', '=', 'table');
    return (await named.where('name', '=', 'schema_versions').executeTakeFirst()) !== undefined;
  }
  const row = await query
    .selectNoFrom(({ fn, val }) => {
      const name = fn<string>('format', [val('%I.schema_versions'), fn('current_schema')]);
      return fn<string | null>('to_regclass', [name]).as('found');
    })
    .executeTakeFirst();
  return (row?.found ?? null) !== null;
}
