// Taking records away: at a person's wish, or because they are old or too many.

import { type DeletionOrder, REPORTS } from '../deletion-order.js';
import type { StoreQuery } from '../tables.js';
import type { DeletionReport, RecordFilter } from '../types.js';
import { inChunks } from './chunks.js';
import { noteDeleted } from './deleted.js';
import { deleteFeedbackBy } from './feedback-of-key.js';
import { adaptersReachedBy, countDeleted, forgetMembers, putDocuments, readDocument } from './lineage.js';
import { matching, matchingIds, rolloutsOf } from './records.js';

/** Records taken away in one transaction by retention. */
const PRUNED_AT_ONCE = 500;
const DAY_MS = 86_400_000;

/**
 * Removes records with their rollouts and feedback, and names the adapters that they reached.
 * What a key said of others' answers goes where all of that key's is to go, or that alone.
 */
export async function deleteRecords(
  query: StoreQuery,
  { report: name, filter, feedbackOnly }: DeletionOrder,
  at: number,
): Promise<DeletionReport> {
  const before = (await readDocument(query, name)) as DeletionReport | null;
  if (before !== null) return before;
  const ids = feedbackOnly ? [] : await withRollouts(query, await matchingIds(query, filter));
  const adapters = await adaptersReachedBy(query, ids);
  await countDeleted(query, adapters);
  const feedback = (await removeRecords(query, ids)) + (await deleteFeedbackBy(query, filter, at));
  await noteDeleted(query, ids, at);
  const report = { trajectories: ids, feedback, adapters, leftovers: null };
  await forgetReports(query, at - DAY_MS);
  await putDocuments(query, { documents: { [name]: report } }, at);
  return report;
}

/** Those that nobody came back for. */
async function forgetReports(query: StoreQuery, before: number): Promise<void> {
  const old = query.deleteFrom('documents').where('name', 'like', `${REPORTS}%`);
  await old.where('updated_at', '<', before).execute();
}

/** With what holds the whole conversation of one of them: rollouts of its question. */
async function withRollouts(query: StoreQuery, ids: readonly string[]): Promise<string[]> {
  const all = new Set(ids);
  for (let open: readonly string[] = ids; open.length > 0; ) {
    open = (await rolloutsOf(query, open)).filter((id) => !all.has(id));
    for (const id of open) all.add(id);
  }
  return [...all];
}

/** @returns how many pieces of feedback went with them */
async function removeRecords(query: StoreQuery, ids: readonly string[]): Promise<number> {
  let feedback = 0;
  for (const some of inChunks(ids)) {
    const removed = await query.deleteFrom('feedback').where('trajectory_id', 'in', some).executeTakeFirst();
    feedback += Number(removed.numDeletedRows);
    await query
      .updateTable('feedback')
      .set({ preferred_over: null })
      .where('preferred_over', 'in', some)
      .execute();
  }
  await forgetMembers(query, ids);
  for (const some of inChunks(ids)) {
    const bodies = query.selectFrom('trajectories').select('sequence').where('id', 'in', some);
    await query.deleteFrom('trajectory_bodies').where('sequence', 'in', bodies).execute();
    await query.deleteFrom('trajectories').where('id', 'in', some).execute();
  }
  return feedback;
}

export interface Retention {
  /** Records made before this time go. */
  readonly createdBefore: number | null;
  /** Beyond so many bytes of records some go: rollouts of the loop first, then what nobody labelled, each the oldest first. */
  readonly maxBytes: number | null;
  /** Bytes beyond, as the last report said; absent: they are counted. */
  readonly excess?: number;
}

export interface PruneReport {
  readonly removed: number;
  /** There is more to remove: call again, with `excess`. */
  readonly more: boolean;
  /** Bytes that are still beyond the limit; null where nobody counted them yet. */
  readonly excess: number | null;
}

/**
 * Removes some of the records that are too old or too many, with their rollouts; small steps leave room for what comes
 * meanwhile. Nobody asked for it: adapters that were trained on them are as good as before.
 */
export async function pruneRecords(query: StoreQuery, retention: Retention): Promise<PruneReport> {
  const { createdBefore, maxBytes } = retention;
  const old = createdBefore === null ? [] : await matchingIds(query, { createdBefore }, PRUNED_AT_ONCE);
  if (old.length > 0) return { ...(await pruned(query, old)), excess: null };
  const excess = maxBytes === null ? 0 : (retention.excess ?? (await bytesOf(query)) - maxBytes);
  const chosen = excess > 0 ? await leastMissed(query, excess) : [];
  if (chosen.length === 0) return { removed: 0, more: false, excess };
  const { bytes, ...report } = await pruned(query, chosen);
  return { ...report, excess: excess - bytes };
}

async function pruned(query: StoreQuery, chosen: readonly string[]) {
  const ids = await withRollouts(query, chosen);
  const bytes = await bytesOf(query, ids);
  await removeRecords(query, ids);
  return { removed: ids.length, more: true, bytes };
}

/** @param ids  default: all records */
async function bytesOf(query: StoreQuery, ids?: readonly string[]): Promise<number> {
  const all = query.selectFrom('trajectories').select(({ fn }) => fn.sum<number | null>('bytes').as('total'));
  if (ids === undefined) return (await all.executeTakeFirstOrThrow()).total ?? 0;
  let sum = 0;
  for (const some of inChunks(ids))
    sum += (await all.where('id', 'in', some).executeTakeFirstOrThrow()).total ?? 0;
  return sum;
}

/** What a loop can make again goes before what it cannot, and what people said of goes last. */
const BY_WORTH: readonly RecordFilter[] = [
  { source: 'train' },
  { notSource: 'train', labelled: false },
  { notSource: 'train' },
];

/** Ids of records of one kind whose bytes make up for the excess, where these are few enough for one transaction. */
async function leastMissed(query: StoreQuery, excess: number): Promise<string[]> {
  for (const filter of BY_WORTH) {
    const oldest = await matching(query, filter)
      .select(['id', 'bytes'])
      .orderBy('sequence')
      .limit(PRUNED_AT_ONCE)
      .execute();
    const ids: string[] = [];
    let left = excess;
    for (const { id, bytes } of oldest) {
      if (left <= 0) break;
      ids.push(id);
      left -= bytes;
    }
    if (ids.length > 0) return ids;
  }
  return [];
}
