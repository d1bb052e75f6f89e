// A database as the rooms use it, of whichever kind.

import type { Kysely, Transaction } from 'kysely';

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
      /** Default: a minute for the server, ten seconds more for its answer. */
      readonly timeouts?: PostgresTimeouts;
    };

export interface PostgresTimeouts {
  /** The server ends a statement of a write that takes longer, or a transaction that is left alone for as long. */
  readonly statementMs: number;
  /** A server that is silent for longer is gone, whatever the network says: its connection is given up. */
  readonly answerMs: number;
}

export interface SqlDatabase<Tables> {
  readonly kind: StorageSettings['kind'];
  readonly query: Kysely<Tables>;
  /**
   * Runs work in one transaction that holds the write lock from its start: writers take turns, so that numbers of a
   * sequence become visible in their order. Committed means synced.
   */
  write<Result>(work: (transaction: Transaction<Tables>) => Promise<Result>): Promise<Result>;
  /**
   * As `write`, for work that takes as long as the tables are large: in PostgreSQL its statements have no limit but on their wait
   * for a lock, the write lock too.
   * @throws {UnavailableError} another process holds a lock: to be tried again later
   */
  writeUnlimited<Result>(work: (transaction: Transaction<Tables>) => Promise<Result>): Promise<Result>;
  /** Bytes that the database takes up; log and free pages too. */
  sizeBytes(): Promise<number>;
  /**
   * After a deletion: nothing of it stays in the log or in free pages (SQLite).
   * @param waits  for other connections, a second at most; the thread stands still meanwhile
   * @throws another connection is in the way: to be tried again later
   */
  scrub(waits: boolean): void;
  close(): Promise<void>;
}
