// Which records people had deleted lately, by their ids alone. A step of training that is entered after that is told so;
// what only grew too old is no reason against it.

import type { StoreQuery } from '../tables.js';
import { inChunks } from './chunks.js';

/** Longer than a step of training takes. */
const REMEMBERED_MS = 30 * 86_400_000;

export async function noteDeleted(query: StoreQuery, ids: readonly string[], at: number): Promise<void> {
  await query
    .deleteFrom('deletions')
    .where('deleted_at', '<', at - REMEMBERED_MS)
    .execute();
  for (const some of inChunks(ids))
    await query
      .insertInto('deletions')
      .values(some.map((trajectory_id) => ({ trajectory_id, deleted_at: at })))
      .onConflict((conflict) => conflict.column('trajectory_id').doNothing())
      .execute();
}

export async function deletedAmong(query: StoreQuery, ids: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const some of inChunks(ids)) {
    const rows = await query
      .selectFrom('deletions')
      .select('trajectory_id')
      .where('trajectory_id', 'in', some)
      .execute();
    for (const { trajectory_id } of rows) found.push(trajectory_id);
  }
  return found;
}

/** A rollout whose origin was deleted before it could be stored counts as deleted too. */
export async function noteUnwanted(query: StoreQuery, id: string, origin: string, at: number): Promise<void> {
  if ((await deletedAmong(query, [origin])).length > 0) await noteDeleted(query, [id], at);
}
