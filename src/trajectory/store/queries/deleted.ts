// What people had deleted lately, records and feedback, by their ids alone. A step of training that is entered after that is told
// so, and whoever counts what was said; what only grew too old is no reason against either.

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
      .values(some.map((id) => ({ id, deleted_at: at })))
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute();
}

/** But those that came back, from an export. */
export async function deletedAmong(query: StoreQuery, ids: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const some of inChunks(ids)) {
    const gone = query.selectFrom('deletions').select('deletions.id').where('deletions.id', 'in', some);
    const rows = await gone
      .where(({ not, exists, selectFrom }) =>
        not(exists(selectFrom('trajectories as t').select('t.id').whereRef('t.id', '=', 'deletions.id'))),
      )
      .where(({ not, exists, selectFrom }) =>
        not(exists(selectFrom('feedback as f').select('f.id').whereRef('f.id', '=', 'deletions.id'))),
      )
      .execute();
    for (const { id } of rows) found.push(id);
  }
  return found;
}

/** A rollout whose origin was deleted before it could be stored counts as deleted too. */
export async function noteUnwanted(query: StoreQuery, id: string, origin: string, at: number): Promise<void> {
  if ((await deletedAmong(query, [origin])).length > 0) await noteDeleted(query, [id], at);
}
