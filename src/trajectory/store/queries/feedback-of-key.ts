// Taking away what one key said.

import type { StoreQuery } from '../tables.js';
import type { RecordFilter } from '../types.js';
import { inChunks } from './chunks.js';
import { noteDeleted } from './deleted.js';
import { rolloutsOf } from './records.js';

/** Grades that come of what people said. */
const SAID = ['feedback', 'gold'] as const;

/** What a filter may hold that still means all of a key's, of whatever time. */
const OF_KEY: ReadonlySet<keyof RecordFilter> = new Set(['keyId', 'createdAfter', 'createdBefore']);

/**
 * Removes what a key said of answers that stay, and the grades that may have come of it. Only where the filter names a key
 * and a time at most: with a person or ids it is about some answers. @returns number of entries
 */
export async function deleteFeedbackBy(query: StoreQuery, filter: RecordFilter, at: number): Promise<number> {
  const { keyId, createdAfter, createdBefore } = filter;
  const given = (Object.keys(filter) as (keyof RecordFilter)[]).filter((name) => filter[name] !== undefined);
  if (keyId === undefined || given.some((name) => !OF_KEY.has(name))) return 0;
  let selection = query
    .selectFrom('feedback')
    .select(['id', 'trajectory_id', 'preferred_over'])
    .where('key_id', '=', keyId);
  if (createdBefore !== undefined) selection = selection.where('created_at', '<', createdBefore);
  if (createdAfter !== undefined) selection = selection.where('created_at', '>', createdAfter);
  const entries = await selection.execute();
  const gone = entries.map(({ id }) => id);
  for (const some of inChunks(gone)) await query.deleteFrom('feedback').where('id', 'in', some).execute();
  await noteDeleted(query, gone, at);
  const about = entries.flatMap(({ trajectory_id, preferred_over }) => [trajectory_id, preferred_over]);
  await forgetGrades(
    query,
    about.filter((id) => id !== null),
  );
  return entries.length;
}

/** Also those of rollouts, which were compared with the gold answers of their origin. */
async function forgetGrades(query: StoreQuery, ids: readonly string[]): Promise<void> {
  const all = [...new Set([...ids, ...(await rolloutsOf(query, ids))])];
  for (const some of inChunks(all))
    await query
      .updateTable('trajectories')
      .set({ reward: null, reward_source: null, reward_rule: null, graded_at: null })
      .where('id', 'in', some)
      .where('reward_source', 'in', SAID)
      .execute();
}
