// Whose fault a database error is: the statement's own, or that of disk, lock, network or server.

/** SQLite's code of an error, or of what an error of ours was made of; null when it has none. */
export function sqliteCode(error: unknown): string | null {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === 'string' && code.startsWith('SQLITE_')) return code;
  return cause === undefined ? null : sqliteCode(cause);
}

/** Whether another connection holds the lock. */
export const isLocked = (error: unknown): boolean => sqliteCode(error)?.startsWith('SQLITE_BUSY') ?? false;

/** SQLite: a constraint, a type, a value that is too big. */
const SQLITE_INPUT = /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)/;
/** SQLSTATE classes: data exception, integrity constraint. */
const POSTGRES_INPUT = /^2[23]/;

/**
 * True where the same statement with the same values would fail again on a healthy database. All else (disk full,
 * read-only, locked, no connection, a table that is missing) may pass: what waits for it must not be thrown away.
 */
export function isStatementFault(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  if (error instanceof TypeError || error instanceof RangeError) return true;
  if (typeof code !== 'string') return false;
  return code.startsWith('SQLITE_') ? SQLITE_INPUT.test(code) : POSTGRES_INPUT.test(code);
}
