// Connections to PostgreSQL.

import { createRequire } from 'node:module';
import type { CustomTypesConfig, Pool } from 'pg';
import type { PostgresTimeouts } from './database.js';

const CONNECTIONS = 4;
const CONNECT_TIMEOUT_MS = 5000;
const KEEP_ALIVE_MS = 30_000;

export const POSTGRES_TIMEOUTS: PostgresTimeouts = { statementMs: 60_000, answerMs: 70_000 };

const INT8 = 20;
const NUMERIC = 1700;

/**
 * A pool whose big integers and sums come as numbers. It connects when it is first used. Nothing is said of the session at
 * its start: PgBouncer refuses such parameters, and `options` of the address would replace ours.
 * @param answerMs  longest wait for an answer; null: as long as the network says that the server is there
 */
export function openPostgresPool(url: string, answerMs: number | null): Pool {
  // Only here: with SQLite it would be loaded for nothing.
  const pg = createRequire(import.meta.url)('pg') as typeof import('pg');
  const pool = new pg.Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    // A peer that vanished without a word: the one tells while a query waits, the other in between.
    ...(answerMs === null ? {} : { query_timeout: answerMs }),
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        oid === INT8 || oid === NUMERIC ? Number : pg.types.getTypeParser(oid, format as 'text'),
    } as CustomTypesConfig,
  });
  // A connection that breaks while it is idle is replaced; without a listener it would end the process.
  pool.on('error', () => {});
  return pool;
}
