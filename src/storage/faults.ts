// Whose fault a database error is: the statement's own, or that of disk, lock, network or server.

/** SQLite: a constraint, a type, a value that is too big. */
const SQLITE_INPUT = /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE|ERROR)/;
/** SQLSTATE classes: data exception, integrity constraint, syntax or name. */
const POSTGRES_INPUT = /^(22|23|42)/;
/** In the way of every statement, though SQLite and PostgreSQL count them among the above. */
const NOT_INPUT = /^(42501)$/;

/**
 * True where the same statement would fail again on a healthy database. All else (disk full, read-only, locked,
 * no connection) may pass.
 */
export function isStatementFault(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  if (error instanceof TypeError || error instanceof RangeError) return true;
  if (typeof code !== 'string' || NOT_INPUT.test(code)) return false;
  return code.startsWith('SQLITE_') ? SQLITE_INPUT.test(code) : POSTGRES_INPUT.test(code);
}
