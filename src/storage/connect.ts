// Opens a database of either kind.

import type { SqlDatabase, StorageSettings } from './database.js';

/**
 * Opens a database; an SQLite file and its folder are made where they are missing. SQLite: write-ahead log, synced
 * at every commit, deleted content overwritten. PostgreSQL: `synchronous_commit` on in every write.
 * @throws {FileFormatError} the file is no SQLite database
 * @throws {UnavailableError} it cannot be opened (SQLite); PostgreSQL is reached by the first query
 */
export async function connectDatabase<Tables>(settings: StorageSettings): Promise<SqlDatabase<Tables>> {
  const { postgresDatabase, sqliteDatabase } = await import('./kysely.js');
  return settings.kind === 'sqlite'
    ? sqliteDatabase(settings.path)
    : postgresDatabase(settings.url, settings.timeouts);
}
