// One way to query SQLite and PostgreSQL: a Kysely over either, with the few things in which they differ.

import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  PostgresDialect,
  SqliteDialect,
  SqliteDriver,
  type Transaction,
} from 'kysely';
import { openPostgresPool } from './postgres.js';
import { type Database, openDatabase } from './sqlite.js';

export type StorageSettings =
  | {
      readonly kind: 'sqlite';
      /** File of the database. */
      readonly path: string;
    }
  | {
      readonly kind: 'postgres';
      /** `postgres://user:password@host:port/database` */
      readonly url: string;
    };

export interface SqlDatabase<Tables> {
  readonly kind: StorageSettings['kind'];
  readonly query: Kysely<Tables>;
  /** Runs work in one transaction that holds the write lock from its start (SQLite). Committed means synced. */
  write<Result>(work: (transaction: Transaction<Tables>) => Promise<Result>): Promise<Result>;
  /** Bytes that the database takes up; log and free pages too. */
  sizeBytes(): Promise<number>;
  /** After a deletion for a person's sake: nothing of it stays in the log or in free pages (SQLite). */
  scrub(): void;
  close(): Promise<void>;
}

/** Waits in SQLite's own code hold the thread; longer ones are made of several tries. */
const BUSY_TIMEOUT_MS = 1000;

/**
 * Opens a database; an SQLite file and its folder are made where they are missing. SQLite: write-ahead log, synced
 * at every commit, deleted content overwritten. PostgreSQL: `synchronous_commit` on in every session.
 * @throws {FileFormatError} the file is no SQLite database
 * @throws {UnavailableError} it cannot be opened (SQLite); PostgreSQL is reached by the first query
 */
export function connectDatabase<Tables>(settings: StorageSettings): SqlDatabase<Tables> {
  return settings.kind === 'sqlite' ? sqliteDatabase(settings.path) : postgresDatabase(settings.url);
}

function sqliteDatabase<Tables>(path: string): SqlDatabase<Tables> {
  const database = openDatabase(path, { busyTimeoutMs: BUSY_TIMEOUT_MS, shrinkable: true });
  database.pragma('secure_delete = ON');
  const query = new Kysely<Tables>({ dialect: new ImmediateDialect(database) });
  return {
    kind: 'sqlite',
    query,
    write: (work) => query.transaction().execute(work),
    sizeBytes: async () => {
      const pages = database.pragma('page_count', { simple: true }) as number;
      return pages * (database.pragma('page_size', { simple: true }) as number);
    },
    scrub: () => {
      database.pragma('incremental_vacuum');
      database.pragma('wal_checkpoint(TRUNCATE)');
    },
    close: () => query.destroy(),
  };
}

class ImmediateDriver extends SqliteDriver {
  readonly #database: Database;

  constructor(database: Database) {
    super({ database });
    this.#database = database;
  }

  /** Two processes that read and then write would else fail instead of waiting for one another. */
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }

  /** After some errors (disk full) SQLite has rolled back itself; another try would hide what happened. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#database.inTransaction) await super.rollbackTransaction(connection);
  }
}

class ImmediateDialect extends SqliteDialect {
  readonly #database: Database;

  constructor(database: Database) {
    super({ database });
    this.#database = database;
  }

  override createDriver(): Driver {
    return new ImmediateDriver(this.#database);
  }
}

function postgresDatabase<Tables>(url: string): SqlDatabase<Tables> {
  const pool = openPostgresPool(url);
  const query = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  return {
    kind: 'postgres',
    query,
    write: (work) => query.transaction().execute(work),
    sizeBytes: async () => {
      const { rows } = await query.executeQuery<{ size: number }>(
        CompiledQuery.raw('select pg_database_size(current_database()) as size'),
      );
      return rows[0]?.size ?? 0;
    },
    scrub: () => {},
    close: () => query.destroy(),
  };
}
