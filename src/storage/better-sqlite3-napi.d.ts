// The same interface; the package brings no types.
declare module 'better-sqlite3-napi' {
  import Sqlite from 'better-sqlite3';

  export default Sqlite;
}
