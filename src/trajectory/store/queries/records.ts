// Records in and out.

import { type SelectQueryBuilder, sql } from 'kysely';
import type { AuditFault } from '../../audit.js';
import { decodeHead, decodeRecord, decodeTexts, type EncodedRecord } from '../codec.js';
import type { AuditState, BodyRow, StoreQuery, StoreTables, TrajectoryRow } from '../tables.js';
import type { Page, RecordFilter, StoreCounts, StoredHead, StoredTexts, StoredTrajectory } from '../types.js';
import { inChunks } from './chunks.js';

export interface AuditResult {
  readonly state: AuditState;
  readonly faults: readonly AuditFault[];
}

/** @returns false where the id is there already; that record stays as it is */
export async function insertRecord(
  query: StoreQuery,
  { head, body }: EncodedRecord,
  audit: AuditResult,
  storedAt: number,
): Promise<boolean> {
  const row = await query
    .insertInto('trajectories')
    .values({ ...head, stored_at: storedAt, ...auditColumns(audit) })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('sequence')
    .executeTakeFirst();
  if (row === undefined) return false;
  // Drivers take buffers only.
  const blobs = {
    token_ids: Buffer.from(body.token_ids),
    origin: Buffer.from(body.origin),
    loss_mask: Buffer.from(body.loss_mask),
    logprobs: Buffer.from(body.logprobs),
    sampling_logprobs: body.sampling_logprobs ? Buffer.from(body.sampling_logprobs) : null,
  };
  await query
    .insertInto('trajectory_bodies')
    .values({ sequence: row.sequence, ...blobs, details: body.details })
    .execute();
  return true;
}

export async function hasRecord(query: StoreQuery, id: string): Promise<boolean> {
  const row = await query.selectFrom('trajectories').select('id').where('id', '=', id).executeTakeFirst();
  return row !== undefined;
}

export async function setAudit(query: StoreQuery, id: string, audit: AuditResult): Promise<void> {
  await query.updateTable('trajectories').set(auditColumns(audit)).where('id', '=', id).execute();
}

const auditColumns = ({ state, faults }: AuditResult) => ({
  audit_state: state,
  audit_faults: faults.length > 0 ? JSON.stringify(faults) : null,
});

/** Whole records, in the order of the ids; those that are not there are left out. */
export async function readRecords(query: StoreQuery, ids: readonly string[]): Promise<StoredTrajectory[]> {
  const found = new Map<string, StoredTrajectory>();
  for (const some of inChunks(ids)) {
    const rows = await query
      .selectFrom('trajectories')
      .innerJoin('trajectory_bodies', 'trajectory_bodies.sequence', 'trajectories.sequence')
      .selectAll('trajectories')
      .select(['token_ids', 'origin', 'loss_mask', 'logprobs', 'sampling_logprobs', 'details'])
      .where('trajectories.id', 'in', some)
      .execute();
    for (const row of rows) found.set(row.id, decodeRecord(row as TrajectoryRow & Row, row as Row));
  }
  return ids.flatMap((id) => found.get(id) ?? []);
}

/** In any order; those that are not there are left out. */
export async function readTexts(query: StoreQuery, ids: readonly string[]): Promise<StoredTexts[]> {
  const found: StoredTexts[] = [];
  for (const some of inChunks(ids)) {
    const rows = await query
      .selectFrom('trajectories')
      .innerJoin('trajectory_bodies', 'trajectory_bodies.sequence', 'trajectories.sequence')
      .select(['trajectories.id', 'details'])
      .where('trajectories.id', 'in', some)
      .execute();
    for (const { id, details } of rows) found.push(decodeTexts(id, details));
  }
  return found;
}

type Row = Omit<BodyRow, 'sequence'> & { sequence: number };

export async function listRecords(
  query: StoreQuery,
  filter: RecordFilter,
  { cursor, limit, skip, order }: Page,
): Promise<StoredHead[]> {
  let selection = matching(query, filter)
    .selectAll()
    .orderBy('sequence', order === 'oldest' ? 'asc' : 'desc')
    .limit(limit);
  if (cursor !== undefined) selection = selection.where('sequence', order === 'oldest' ? '>' : '<', cursor);
  if (skip !== undefined) selection = selection.offset(skip);
  return (await selection.execute()).map(decodeHead);
}

/** Ids that match, oldest first. */
export async function matchingIds(
  query: StoreQuery,
  filter: RecordFilter,
  limit?: number,
): Promise<string[]> {
  let selection = matching(query, filter).select('id').orderBy('sequence');
  if (limit !== undefined) selection = selection.limit(limit);
  return (await selection.execute()).map(({ id }) => id);
}

/** Records whose origin is one of these, oldest first. */
export async function rolloutsOf(query: StoreQuery, ids: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const some of inChunks(ids)) {
    const selection = query.selectFrom('trajectories').select('id').where('origin_id', 'in', some);
    for (const { id } of await selection.orderBy('sequence').execute()) found.push(id);
  }
  return found;
}

/** Those that match, for whoever says what of them is wanted. */
export function matching(
  query: StoreQuery,
  filter: RecordFilter,
): SelectQueryBuilder<StoreTables, 'trajectories', object> {
  let selection: SelectQueryBuilder<StoreTables, 'trajectories', object> = query.selectFrom('trajectories');
  const equal = {
    request_id: filter.requestId,
    user_key: filter.userKey,
    key_id: filter.keyId,
    method: filter.method,
    source: filter.source,
    audit_state: filter.auditState,
    question_digest: filter.questionDigest,
    adapter_version: filter.adapterVersion,
  } as const;
  for (const [column, value] of Object.entries(equal))
    if (value !== undefined) selection = selection.where(column as keyof typeof equal, '=', value);
  const { ids, notSource, createdAfter, createdBefore, labelled } = filter;
  if (notSource !== undefined) selection = selection.where('source', '<>', notSource);
  if (ids !== undefined) selection = selection.where('id', 'in', ids.length > 0 ? [...ids] : ['']);
  if (createdBefore !== undefined) selection = selection.where('created_at', '<', createdBefore);
  if (createdAfter !== undefined) selection = selection.where('created_at', '>', createdAfter);
  if (labelled === undefined) return selection;
  return selection.where(labelled ? HAS_LABEL : sql<boolean>`not ${HAS_LABEL}`);
}

const HAS_LABEL = sql<boolean>`exists (
  select 1 from feedback
  where (feedback.trajectory_id = trajectories.id or feedback.preferred_over = trajectories.id)
    and (coalesce(feedback.reward, feedback.rating) is not null
      or coalesce(feedback.gold_answers, feedback.preferred_over) is not null)
)`;

export async function countAll(query: StoreQuery): Promise<Omit<StoreCounts, 'sizeBytes'>> {
  const rows = await query
    .selectFrom('trajectories')
    .select(({ fn }) => [
      'audit_state',
      fn.countAll<number>().as('count'),
      fn.sum<number | null>('bytes').as('bytes'),
    ])
    .groupBy('audit_state')
    .execute();
  const feedback = await query
    .selectFrom('feedback')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  const of = (state: AuditState): number => rows.find((row) => row.audit_state === state)?.count ?? 0;
  return {
    trajectories: rows.reduce((sum, { count }) => sum + count, 0),
    quarantined: of('quarantined'),
    unchecked: of('unchecked'),
    feedback: feedback.count,
    recordBytes: rows.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0),
  };
}

export interface GradeInput {
  readonly id: string;
  readonly value: number;
  readonly source: string;
  readonly rule: string;
}

/** @returns number of records that are there */
export async function setGrades(
  query: StoreQuery,
  grades: readonly GradeInput[],
  gradedAt: number,
): Promise<number> {
  let found = 0;
  for (const { id, value, source, rule } of grades) {
    const { numUpdatedRows } = await query
      .updateTable('trajectories')
      .set({ reward: value, reward_source: source, reward_rule: rule, graded_at: gradedAt })
      .where('id', '=', id)
      .executeTakeFirst();
    found += Number(numUpdatedRows);
  }
  return found;
}
