// storage/: opens databases and says how safely they write.
// The only room that touches a database driver.
// Never knows a table: each room owns its own.

export { type Database, type DatabaseOptions, openDatabase, type Statement } from './sqlite.js';
