// Taking records away: at a person's wish, or because they are old or too many.

import type { StoreQuery } from '../tables.js';
import type { DeletionReport, RecordFilter } from '../types.js';
import { inChunks } from './chunks.js';
import { adaptersReachedBy, forgetMembers } from './lineage.js';
import { matchingIds } from './records.js';

/** Records taken away in one transaction by retention. */
const PRUNED_AT_ONCE = 500;

/** Removes records with their feedback and the batches made of them, and names the adapters that they reached. */
export async function deleteRecords(query: StoreQuery, filter: RecordFilter): Promise<DeletionReport> {
  const ids = await matchingIds(query, filter);
  const adapters = await adaptersReachedBy(query, ids);
  const batches = new Set<string>();
  let feedback = 0;
  for (const some of inChunks(ids)) {
    const rows = await query
      .selectFrom('batch_members')
      .select('batch_id')
      .distinct()
      .where('trajectory_id', 'in', some)
      .execute();
    for (const { batch_id } of rows) batches.add(batch_id);
    const removed = await query.deleteFrom('feedback').where('trajectory_id', 'in', some).executeTakeFirst();
    feedback += Number(removed.numDeletedRows);
    await query
      .updateTable('feedback')
      .set({ preferred_over: null })
      .where('preferred_over', 'in', some)
      .execute();
  }
  for (const some of inChunks([...batches]))
    await query.deleteFrom('batches').where('id', 'in', some).execute();
  await forgetMembers(query, ids);
  for (const some of inChunks(ids)) {
    const bodies = query.selectFrom('trajectories').select('sequence').where('id', 'in', some);
    await query.deleteFrom('trajectory_bodies').where('sequence', 'in', bodies).execute();
    await query.deleteFrom('trajectories').where('id', 'in', some).execute();
  }
  return { trajectories: ids, feedback, batches: [...batches], adapters };
}

export interface Retention {
  /** Records made before this time go. */
  readonly createdBefore: number | null;
  /** Beyond so many bytes of records the oldest go. */
  readonly maxBytes: number | null;
}

export interface PruneReport {
  readonly removed: number;
  /** There is more to remove: call again. */
  readonly more: boolean;
}

/** Removes some of the records that are too old or too many; small steps leave room for what comes meanwhile. */
export async function pruneRecords(query: StoreQuery, retention: Retention): Promise<PruneReport> {
  const { createdBefore, maxBytes } = retention;
  const old = createdBefore === null ? [] : await matchingIds(query, { createdBefore }, PRUNED_AT_ONCE);
  const ids = old.length > 0 || maxBytes === null ? old : await overflow(query, maxBytes);
  if (ids.length === 0) return { removed: 0, more: false };
  await deleteRecords(query, { ids });
  return { removed: ids.length, more: true };
}

async function overflow(query: StoreQuery, maxBytes: number): Promise<string[]> {
  const { total } = await query
    .selectFrom('trajectories')
    .select(({ fn }) => fn.sum<number | null>('bytes').as('total'))
    .executeTakeFirstOrThrow();
  let excess = (total ?? 0) - maxBytes;
  if (excess <= 0) return [];
  const oldest = await query
    .selectFrom('trajectories')
    .select(['id', 'bytes'])
    .orderBy('sequence')
    .limit(PRUNED_AT_ONCE)
    .execute();
  const ids: string[] = [];
  for (const { id, bytes } of oldest) {
    if (excess <= 0) break;
    ids.push(id);
    excess -= bytes;
  }
  return ids;
}
