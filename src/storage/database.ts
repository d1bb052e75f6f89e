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
    };

export interface SqlDatabase<Tables> {
  readonly kind: StorageSettings['kind'];
  readonly query: Kysely<Tables>;
  /**
   * Runs work in one transaction that holds the write lock from its start: writers take turns, so that numbers of a
   * sequence become visible in their order. Committed means synced.
   */
  write<Result>(work: (transaction: Transaction<Tables>) => Promise<Result>): Promise<Result>;
  /** Bytes that the database takes up; log and free pages too. */
  sizeBytes(): Promise<number>;
  /** After a deletion for a person's sake: nothing of it stays in the log or in free pages (SQLite). */
  scrub(): void;
  close(): Promise<void>;
}
