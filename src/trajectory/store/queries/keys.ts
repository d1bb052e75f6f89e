// API keys as digests with scopes.

import { NotFoundError } from '../../../errors.js';
import type { StoreQuery } from '../tables.js';
import type { KeyInput, KeyRecord, Scope } from '../types.js';

export async function createKey(query: StoreQuery, key: KeyInput, createdAt: number): Promise<void> {
  await query
    .insertInto('api_keys')
    .values({
      id: key.id,
      name: key.name,
      digest: key.digest,
      scopes: JSON.stringify(key.scopes),
      created_at: createdAt,
      revoked_at: null,
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute();
}

/** Idempotent. @throws {NotFoundError} no such key */
export async function revokeKey(query: StoreQuery, id: string, revokedAt: number): Promise<void> {
  const row = await query.selectFrom('api_keys').select('revoked_at').where('id', '=', id).executeTakeFirst();
  if (row === undefined) throw new NotFoundError(`there is no key "${id}"`);
  if (row.revoked_at !== null) return;
  await query.updateTable('api_keys').set({ revoked_at: revokedAt }).where('id', '=', id).execute();
}

/** All keys, revoked ones too, oldest first. */
export async function listKeys(query: StoreQuery): Promise<KeyRecord[]> {
  const rows = await query.selectFrom('api_keys').selectAll().orderBy('created_at').orderBy('id').execute();
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    digest: row.digest,
    scopes: JSON.parse(row.scopes) as Scope[],
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
  }));
}
