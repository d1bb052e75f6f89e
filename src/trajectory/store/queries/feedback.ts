// What people and programs said of an answer. Entries are only ever added; the label is worked out from all of them.

import { type Insertable, type Selectable, sql } from 'kysely';
import { InvalidInputError, NotFoundError } from '../../../errors.js';
import { canonicalJson, sha256Hex } from '../../../util/digest.js';
import type { FeedbackRow, StoreQuery } from '../tables.js';
import type { FeedbackEntry, FeedbackInput, FeedbackOutcome, FeedbackRole } from '../types.js';
import { inChunks } from './chunks.js';

export interface FeedbackDraft {
  readonly id: string;
  readonly createdAt: number;
  readonly input: FeedbackInput;
}

/**
 * Adds an entry, or finds the one that has its id or was sent with the same idempotency key.
 * @throws {NotFoundError} no such record
 * @throws {InvalidInputError} the key was used for something else, or the other answer is to another question
 */
export async function addFeedback(query: StoreQuery, draft: FeedbackDraft): Promise<FeedbackOutcome> {
  const { input } = draft;
  const row = rowOf(draft);
  const before = await repetition(query, row);
  if (before !== null) return { entry: before, repeated: true };
  await checkTargets(query, input);
  const last = input.role === 'import' ? null : await lastOfKey(query, row);
  if (last !== null) return { entry: last, repeated: true };
  const { sequence } = await query
    .insertInto('feedback')
    .values(row)
    .returning('sequence')
    .executeTakeFirstOrThrow();
  return { entry: entryOf({ ...row, sequence } as Selectable<FeedbackRow>), repeated: false };
}

/** A key that means something new says it in fewer words; each is read again whenever the answer is looked at. */
const MOST_OF_KEY = 100;

/**
 * The entry that the key made last of the answer where that says the same: nothing is new then.
 * @throws {InvalidInputError} the key has said too much of it
 */
async function lastOfKey(
  query: StoreQuery,
  { trajectory_id, key_id, request_digest }: Insertable<FeedbackRow>,
): Promise<FeedbackEntry | null> {
  const rows = await query
    .selectFrom('feedback')
    .selectAll()
    .where('trajectory_id', '=', trajectory_id)
    .where('key_id', '=', key_id)
    .orderBy('sequence', 'desc')
    .limit(MOST_OF_KEY)
    .execute();
  const [last] = rows;
  if (last !== undefined && last.request_digest === request_digest) return entryOf(last);
  if (rows.length < MOST_OF_KEY) return null;
  throw new InvalidInputError(
    `id: expected at most ${MOST_OF_KEY} entries of one key about an answer; ${key_id} has made so many about "${trajectory_id}"`,
    'id',
  );
}

/** Entries of these records in the order in which they came. */
export async function feedbackOf(query: StoreQuery, ids: readonly string[]): Promise<FeedbackEntry[]> {
  const entries: FeedbackEntry[] = [];
  for (const some of inChunks(ids)) {
    const rows = await query
      .selectFrom('feedback')
      .selectAll()
      .where('trajectory_id', 'in', some)
      .orderBy('sequence')
      .execute();
    entries.push(...rows.map(entryOf));
  }
  return entries;
}

/**
 * Of the entries of these records the last of each key that rates, the last that names right answers, and for each other answer the
 * last that prefers this one: all that labels are worked out from, however often a key repeats itself.
 */
export async function lastWordsOf(query: StoreQuery, ids: readonly string[]): Promise<FeedbackEntry[]> {
  const entries: FeedbackEntry[] = [];
  for (const some of inChunks(ids)) {
    const rows = await lastWords(query, some).execute();
    entries.push(...rows.map(entryOf));
  }
  return entries;
}

/** The outer condition is for PostgreSQL, which else reads the whole table for an `or` of sub-selects. */
export function lastWords(query: StoreQuery, ids: readonly string[]) {
  const last = query
    .selectFrom('feedback')
    .select(({ fn }) => fn.max('sequence').as('sequence'))
    .where('trajectory_id', 'in', ids)
    .groupBy(['trajectory_id', 'key_id']);
  return query
    .selectFrom('feedback')
    .selectAll()
    .where('trajectory_id', 'in', ids)
    .where(({ or, eb }) =>
      or([
        eb('sequence', 'in', last.where(IS_RATED)),
        eb('sequence', 'in', last.where('gold_answers', '<>', '[]')),
        eb('sequence', 'in', last.where('preferred_over', 'is not', null).groupBy('preferred_over')),
      ]),
    )
    .orderBy('sequence');
}

const IS_RATED = sql<boolean>`coalesce(reward, rating) is not null`;

/** Entries added after one, so that a reader can follow. */
export async function feedbackSince(
  query: StoreQuery,
  sequence: number,
  limit: number,
): Promise<FeedbackEntry[]> {
  const rows = await query
    .selectFrom('feedback')
    .selectAll()
    .where('sequence', '>', sequence)
    .orderBy('sequence')
    .limit(limit)
    .execute();
  return rows.map(entryOf);
}

async function repetition(query: StoreQuery, row: Insertable<FeedbackRow>): Promise<FeedbackEntry | null> {
  const found = await query
    .selectFrom('feedback')
    .selectAll()
    .where(({ or, and, eb }) =>
      or([
        eb('id', '=', row.id),
        ...(row.idempotency_key === null || row.idempotency_key === undefined
          ? []
          : [and([eb('key_id', '=', row.key_id), eb('idempotency_key', '=', row.idempotency_key)])]),
      ]),
    )
    .executeTakeFirst();
  if (found === undefined) return null;
  // Under one id there is one entry: one that comes in from an export has another role there.
  if (found.id !== row.id && found.request_digest !== row.request_digest)
    throw new InvalidInputError('this idempotency key was used for other feedback', 'idempotency-key');
  return entryOf(found);
}

async function checkTargets(query: StoreQuery, input: FeedbackInput): Promise<void> {
  const question = await questionOf(query, input.trajectoryId);
  if (question === null) throw new NotFoundError(`there is no stored answer "${input.trajectoryId}"`);
  if (input.preferredOver === null) return;
  if (input.preferredOver === input.trajectoryId)
    throw new InvalidInputError('preferred_over: expected another answer than id', 'preferred_over');
  const other = await questionOf(query, input.preferredOver);
  if (other === null) throw new NotFoundError(`there is no stored answer "${input.preferredOver}"`);
  if (other !== question)
    throw new InvalidInputError('preferred_over: expected an answer to the same question', 'preferred_over');
}

async function questionOf(query: StoreQuery, id: string): Promise<string | null> {
  // No id of ours, and PostgreSQL does not take it for text.
  if (id.includes('\0')) return null;
  const row = await query
    .selectFrom('trajectories')
    .select('question_digest')
    .where('id', '=', id)
    .executeTakeFirst();
  return row?.question_digest ?? null;
}

function rowOf({ id, createdAt, input }: FeedbackDraft): Insertable<FeedbackRow> {
  return {
    id,
    trajectory_id: input.trajectoryId,
    created_at: createdAt,
    key_id: input.keyId,
    role: input.role,
    idempotency_key: input.idempotencyKey,
    request_digest: sha256Hex(canonicalJson(input)),
    reward: input.reward,
    rating: input.rating,
    gold_answers: input.goldAnswers === null ? null : JSON.stringify(input.goldAnswers),
    preferred_over: input.preferredOver,
    comment: input.comment === null ? null : JSON.stringify(input.comment),
  };
}

function entryOf(row: Selectable<FeedbackRow>): FeedbackEntry {
  return {
    sequence: row.sequence,
    id: row.id,
    trajectoryId: row.trajectory_id,
    createdAt: row.created_at,
    keyId: row.key_id,
    role: row.role as FeedbackRole,
    idempotencyKey: row.idempotency_key,
    reward: row.reward,
    rating: row.rating,
    goldAnswers: row.gold_answers === null ? null : (JSON.parse(row.gold_answers) as string[]),
    preferredOver: row.preferred_over,
    comment: row.comment === null ? null : (JSON.parse(row.comment) as string),
  };
}
