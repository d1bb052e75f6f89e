// A Kysely over either driver, with the few things in which they differ. Loaded by the first connection: its many modules
// are of no use to threads that open none.

import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  PostgresDialect,
  SqliteDialect,
  SqliteDriver,
  sql,
  type Transaction,
} from 'kysely';
import { UnavailableError } from '../errors.js';
import type { PostgresTimeouts, SqlDatabase } from './database.js';
import { openPostgresPool, POSTGRES_TIMEOUTS } from './postgres.js';
import { type Database, openDatabase } from './sqlite.js';

/** Key of the advisory lock that writers to PostgreSQL take; any number that nobody else takes. */
const WRITE_LOCK = 7_325_614_011;
/** SQLSTATE of a wait for a lock that took too long. */
const LOCK_TIMEOUT = '55P03';
/** Waits in SQLite's own code hold the thread; longer ones are made of several tries. */
const BUSY_TIMEOUT_MS = 1000;

export function sqliteDatabase<Tables>(path: string): SqlDatabase<Tables> {
  const database = openDatabase(path, { busyTimeoutMs: BUSY_TIMEOUT_MS, shrinkable: true });
  database.pragma('secure_delete = ON');
  const query = new Kysely<Tables>({ dialect: new ImmediateDialect(database) });
  const write: SqlDatabase<Tables>['write'] = (work) => query.transaction().execute(work);
  return {
    kind: 'sqlite',
    query,
    write,
    writeUnlimited: write,
    sizeBytes: async () => {
      const pages = database.pragma('page_count', { simple: true }) as number;
      return pages * (database.pragma('page_size', { simple: true }) as number);
    },
    scrub: (waits) => {
      if (!waits) database.pragma('busy_timeout = 0');
      try {
        database.pragma('incremental_vacuum');
        // Who writes is told of by an error, who reads in the result.
        const [checkpoint] = database.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[];
        if (checkpoint?.busy === 1) throw new UnavailableError('another connection still reads the log');
      } finally {
        if (!waits) database.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
      }
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

export function postgresDatabase<Tables>(
  url: string,
  timeouts: PostgresTimeouts = POSTGRES_TIMEOUTS,
): SqlDatabase<Tables> {
  const { statementMs, answerMs } = timeouts;
  const open = (longestAnswerMs: number | null) =>
    new Kysely<Tables>({ dialect: new PostgresDialect({ pool: openPostgresPool(url, longestAnswerMs) }) });
  const query = open(answerMs);
  return {
    kind: 'postgres',
    query,
    write: (work) =>
      inTurn(
        query,
        { statement_timeout: statementMs, idle_in_transaction_session_timeout: statementMs },
        work,
      ),
    async writeUnlimited(work) {
      // A pool's limit on answers is that of all its connections.
      const unlimited = open(null);
      const limits = {
        statement_timeout: 0,
        lock_timeout: statementMs,
        idle_in_transaction_session_timeout: statementMs,
      };
      try {
        return await inTurn(unlimited, limits, work);
      } catch (error) {
        if ((error as { code?: unknown } | null)?.code !== LOCK_TIMEOUT) throw error;
        throw new UnavailableError(
          `another process has held the tables for over ${statementMs / 1000} s, perhaps to bring them up to date`,
          { cause: error },
        );
      } finally {
        await unlimited.destroy();
      }
    },
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

/**
 * One writer after the other. The settings are for the transaction alone, whatever address, role, database or a pooler's other
 * clients have set. A commit is told only when it would survive a crash of the server.
 * @param limitsMs  0: none; a server that we have lost must not hold the write lock for ever
 */
function inTurn<Tables, Result>(
  query: Kysely<Tables>,
  limitsMs: Readonly<Record<string, number>>,
  work: (transaction: Transaction<Tables>) => Promise<Result>,
): Promise<Result> {
  const settings = { synchronous_commit: 'on', ...limitsMs };
  const set = Object.entries(settings).map(
    ([name, value]) => sql`set_config(${name}, ${String(value)}, true)`,
  );
  return query.transaction().execute(async (transaction) => {
    await sql`select ${sql.join(set)}`.execute(transaction);
    await sql`select pg_advisory_xact_lock(${WRITE_LOCK})`.execute(transaction);
    return work(transaction);
  });
}
