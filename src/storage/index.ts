// storage/: opens databases and says how safely they write.
// The only room that touches a database driver.
// Never knows a table: each room owns its own.

export { connectDatabase } from './connect.js';
export type { SqlDatabase, StorageSettings } from './database.js';
export { isLocked, isStatementFault, sqliteCode } from './faults.js';
export { type ColumnTypes, type Migration, migrate } from './migrate.js';
export { type Database, openDatabase } from './sqlite.js';
