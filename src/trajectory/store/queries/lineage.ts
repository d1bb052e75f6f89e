// Which records a training step used, which adapter came of it, and what others keep beside it.

import type { Selectable } from 'kysely';
import { ConflictError } from '../../../errors.js';
import { canonicalJson } from '../../../util/digest.js';
import type { StoreQuery, StoreTables } from '../tables.js';
import type {
  AdapterHead,
  AdapterRecord,
  DocumentsInput,
  ReachedAdapter,
  StepInput,
  StepOutcome,
} from '../types.js';
import { inChunks } from './chunks.js';
import { deletedAmong } from './deleted.js';

export async function commitStep(
  query: StoreQuery,
  { adapter, trajectoryIds, ...states }: StepInput,
  at: number,
): Promise<StepOutcome> {
  await checkExpected(query, states);
  const missing = await missingIds(query, trajectoryIds);
  await query
    .insertInto('adapters')
    .values({
      digest: adapter.digest,
      parent_digest: adapter.parentDigest,
      created_at: at,
      receipt: JSON.stringify(adapter.receipt),
      deleted_members: (await deletedAmong(query, missing)).length,
    })
    .onConflict((conflict) => conflict.column('digest').doNothing())
    .execute();
  for (const some of inChunks(present(trajectoryIds, missing)))
    await query
      .insertInto('adapter_members')
      .values(some.map((trajectory_id) => ({ adapter_digest: adapter.digest, trajectory_id })))
      .onConflict((conflict) => conflict.columns(['adapter_digest', 'trajectory_id']).doNothing())
      .execute();
  await writeDocuments(query, states, at);
  return { missing };
}

/** @throws {ConflictError} another one than expected is there: nothing is written */
export async function putDocuments(query: StoreQuery, input: DocumentsInput, at: number): Promise<void> {
  await checkExpected(query, input);
  await writeDocuments(query, input, at);
}

/** What is to be written itself may be there already: then the write comes a second time. */
async function checkExpected(query: StoreQuery, { documents, expected = {} }: DocumentsInput): Promise<void> {
  for (const [name, content] of Object.entries(expected)) {
    const found = canonicalJson(await readDocument(query, name));
    const wanted = canonicalJson(content);
    if (found === wanted || (name in documents && found === canonicalJson(documents[name]))) continue;
    throw new ConflictError(`the document "${name}" reads ${found}, expected ${wanted}`);
  }
}

async function writeDocuments(query: StoreQuery, { documents }: DocumentsInput, at: number): Promise<void> {
  for (const [name, content] of Object.entries(documents)) {
    if (content === null) {
      await query.deleteFrom('documents').where('name', '=', name).execute();
      continue;
    }
    const row = { updated_at: at, value: JSON.stringify(content) };
    await query
      .insertInto('documents')
      .values({ name, ...row })
      .onConflict((conflict) => conflict.column('name').doUpdateSet(row))
      .execute();
  }
}

/** Null where there is none. */
export async function readDocument(query: StoreQuery, name: string): Promise<unknown> {
  const row = await query.selectFrom('documents').select('value').where('name', '=', name).executeTakeFirst();
  return row === undefined ? null : JSON.parse(row.value);
}

/** By name, all whose names begin so. */
export async function readDocumentsUnder(
  query: StoreQuery,
  prefix: string,
): Promise<Readonly<Record<string, unknown>>> {
  const all = query.selectFrom('documents').select(['name', 'value']).orderBy('name');
  const rows = await all.where('name', 'like', `${prefix}%`).execute();
  // SQLite's `like` takes capitals for small letters.
  const named = rows.filter(({ name }) => name.startsWith(prefix));
  return Object.fromEntries(named.map(({ name, value }) => [name, JSON.parse(value) as unknown]));
}

/** All adapter versions that a step made, oldest first. */
export async function adapterHeads(query: StoreQuery): Promise<AdapterHead[]> {
  const rows = await query
    .selectFrom('adapters')
    .selectAll()
    .orderBy('created_at')
    .orderBy('digest')
    .execute();
  return rows.map(headOf);
}

export async function listAdapters(query: StoreQuery): Promise<AdapterRecord[]> {
  return withMembers(query, await adapterHeads(query));
}

export interface Line {
  readonly version: string;
  /** Where it ends; left out itself. */
  readonly until: readonly string[];
}

/** A version and those it comes from, newest first, as far as steps made them. */
export async function lineOf(query: StoreQuery, { version, until }: Line): Promise<AdapterRecord[]> {
  const line = new Map<string, AdapterHead>();
  for (let at: string | null = version; at !== null && !until.includes(at) && !line.has(at); ) {
    const row = await query.selectFrom('adapters').selectAll().where('digest', '=', at).executeTakeFirst();
    if (row === undefined) break;
    line.set(at, headOf(row));
    at = row.parent_digest;
  }
  return withMembers(query, [...line.values()]);
}

const headOf = (row: Selectable<StoreTables['adapters']>): AdapterHead => ({
  digest: row.digest,
  parentDigest: row.parent_digest,
  createdAt: row.created_at,
  receipt: JSON.parse(row.receipt) as unknown,
  deletedRecords: row.deleted_members,
});

async function withMembers(query: StoreQuery, heads: readonly AdapterHead[]): Promise<AdapterRecord[]> {
  const members = await membersOf(
    query,
    heads.map(({ digest }) => digest),
  );
  return heads.map((head) => ({ ...head, trajectoryIds: members.get(head.digest) ?? [] }));
}

async function membersOf(query: StoreQuery, digests: readonly string[]): Promise<Map<string, string[]>> {
  const members = new Map<string, string[]>(digests.map((digest) => [digest, []]));
  for (const some of inChunks(digests)) {
    const rows = await query
      .selectFrom('adapter_members')
      .selectAll()
      .where('adapter_digest', 'in', some)
      .orderBy('trajectory_id')
      .execute();
    for (const { adapter_digest, trajectory_id } of rows) members.get(adapter_digest)?.push(trajectory_id);
  }
  return members;
}

/** Adapter versions that were trained on any of these records, and all that descend from those. */
export async function adaptersReachedBy(
  query: StoreQuery,
  ids: readonly string[],
): Promise<ReachedAdapter[]> {
  const records = new Map<string, number>();
  for (const some of inChunks(ids)) {
    const rows = await query
      .selectFrom('adapter_members')
      .select(({ fn }) => ['adapter_digest', fn.countAll<number>().as('count')])
      .where('trajectory_id', 'in', some)
      .groupBy('adapter_digest')
      .execute();
    for (const { adapter_digest, count } of rows)
      records.set(adapter_digest, (records.get(adapter_digest) ?? 0) + count);
  }
  if (records.size === 0) return [];
  const adapters = await query
    .selectFrom('adapters')
    .select(['digest', 'parent_digest'])
    .orderBy('created_at')
    .execute();
  const reached = new Set(records.keys());
  for (let before = -1; before !== reached.size; ) {
    before = reached.size;
    for (const { digest, parent_digest } of adapters)
      if (parent_digest !== null && reached.has(parent_digest)) reached.add(digest);
  }
  return [...reached].map((digest) => ({ digest, records: records.get(digest) ?? 0 }));
}

/** Notes how many records of each adapter people had deleted. */
export async function countDeleted(query: StoreQuery, reached: readonly ReachedAdapter[]): Promise<void> {
  for (const { digest, records } of reached)
    if (records > 0)
      await query
        .updateTable('adapters')
        .set((row) => ({ deleted_members: row('deleted_members', '+', records) }))
        .where('digest', '=', digest)
        .execute();
}

/** Which records of an adapter are gone is not kept. */
export async function forgetMembers(query: StoreQuery, ids: readonly string[]): Promise<void> {
  for (const some of inChunks(ids))
    await query.deleteFrom('adapter_members').where('trajectory_id', 'in', some).execute();
}

async function missingIds(query: StoreQuery, ids: readonly string[]): Promise<string[]> {
  const found = new Set<string>();
  for (const some of inChunks(ids)) {
    const rows = await query.selectFrom('trajectories').select('id').where('id', 'in', some).execute();
    for (const { id } of rows) found.add(id);
  }
  return ids.filter((id) => !found.has(id));
}

function present(ids: readonly string[], missing: readonly string[]): string[] {
  const gone = new Set(missing);
  return [...new Set(ids)].filter((id) => !gone.has(id));
}
