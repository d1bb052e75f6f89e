// Opens an SQLite file with the settings that every room wants.

import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type Sqlite from 'better-sqlite3';
import { FileFormatError, NotFoundError, UnavailableError } from '../errors.js';
import { Driver } from './sqlite-driver.js';

/** The driver's connection. Synchronous: keep it off the HTTP thread. */
export type Database = Sqlite.Database;

/** `database.prepare<Parameters, Row>(sql)`: parameters as a tuple (or one object of names), and a row's type. */
export type Statement<Parameters extends unknown[] | object = unknown[], Row = unknown> = Sqlite.Statement<
  Parameters extends unknown[] ? Parameters : [Parameters],
  Row
>;

export interface DatabaseOptions {
  /** The file must exist and is never written. */
  readonly readonly?: boolean;
  /** A missing file is an error, not a new database. */
  readonly mustExist?: boolean;
  /** The journal mode stays as the file has it: who has the file open needs no other files beside it from then on. */
  readonly keepJournalMode?: boolean;
  /** `FULL` (default): what was committed survives power loss. `NORMAL`: it survives a crash of the process only. */
  readonly synchronous?: 'FULL' | 'NORMAL' | 'OFF';
  /** Longest wait for another writer. */
  readonly busyTimeoutMs?: number;
  /** Memory for pages. */
  readonly cacheBytes?: number;
  /** A new file can give free pages back, by `pragma incremental_vacuum`. */
  readonly shrinkable?: boolean;
}

/**
 * Opens (and, unless `readonly` or `mustExist`, creates) the database at `path`; `:memory:` is a private one. Write-ahead log,
 * foreign keys enforced.
 * @throws {NotFoundError} when a file that must exist is missing
 * @throws {FileFormatError} when the file is no SQLite database
 * @throws {UnavailableError} when it cannot be opened (permissions, lock)
 */
export function openDatabase(path: string, options: DatabaseOptions = {}): Database {
  const {
    readonly = false,
    mustExist = readonly,
    synchronous = 'FULL',
    busyTimeoutMs = 5000,
    cacheBytes = 16 << 20,
  } = options;
  const inMemory = path === ':memory:';
  if (mustExist && !inMemory && !existsSync(path)) throw new NotFoundError(`database ${path} does not exist`);
  if (!mustExist && !inMemory) mkdirSync(dirname(path), { recursive: true });
  let database: Database | undefined;
  try {
    database = new Driver(path, { readonly, fileMustExist: mustExist && !inMemory, timeout: busyTimeoutMs });
    // The first statement reads the file's header.
    database.pragma('schema_version');
    if (options.shrinkable === true) database.pragma('auto_vacuum = INCREMENTAL');
    if (!readonly && !inMemory && options.keepJournalMode !== true) database.pragma('journal_mode = WAL');
    database.pragma(`synchronous = ${synchronous}`);
    database.pragma(`cache_size = ${-Math.ceil(cacheBytes / 1024)}`);
    database.pragma('foreign_keys = ON');
    database.pragma('temp_store = MEMORY');
    return database;
  } catch (cause) {
    database?.close();
    throw asOurs(path, cause);
  }
}

function asOurs(path: string, cause: unknown): Error {
  const { code, message } = cause as { code?: string; message: string };
  if (code === 'SQLITE_NOTADB' || code?.startsWith('SQLITE_CORRUPT'))
    return new FileFormatError(`${path} is not a sound SQLite database: ${message}`, { cause });
  return new UnavailableError(`database ${path} cannot be opened: ${message}`, { cause });
}
