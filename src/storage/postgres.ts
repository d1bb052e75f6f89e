// Connections to PostgreSQL.

import { createRequire } from 'node:module';
import type { CustomTypesConfig, Pool } from 'pg';

const CONNECTIONS = 4;
const CONNECT_TIMEOUT_MS = 5000;
/** A statement that takes longer is ended: the server is stuck, and another try is better than waiting. */
const STATEMENT_TIMEOUT_MS = 60_000;

const INT8 = 20;
const NUMERIC = 1700;

/** A pool whose big integers and sums come as numbers. It connects when it is first used. */
export function openPostgresPool(url: string): Pool {
  // Only here: with SQLite it would be loaded for nothing.
  const pg = createRequire(import.meta.url)('pg') as typeof import('pg');
  const pool = new pg.Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    // A commit is told only when it would survive a crash of the server.
    options: '-c synchronous_commit=on',
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        oid === INT8 || oid === NUMERIC ? Number : pg.types.getTypeParser(oid, format as 'text'),
    } as CustomTypesConfig,
  });
  // A connection that breaks while it is idle is replaced; without a listener it would end the process.
  pool.on('error', () => {});
  return pool;
}
