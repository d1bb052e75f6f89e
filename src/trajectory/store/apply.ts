// Turns writes into statements: many in one transaction, so that one sync pays for all.

import { SearchloopError } from '../../errors.js';
import { isStatementFault, type SqlDatabase } from '../../storage/index.js';
import type { RecordAudit } from './auditing.js';
import type { Write, WriteFault, WriteOutcome } from './messages.js';
import { noteUnwanted } from './queries/deleted.js';
import { deleteRecords, pruneRecords } from './queries/deletion.js';
import { addFeedback } from './queries/feedback.js';
import { createKey, revokeKey } from './queries/keys.js';
import { commitStep, putDocuments } from './queries/lineage.js';
import { hasRecord, insertRecord, setGrades } from './queries/records.js';
import type { StoreQuery, StoreTables } from './tables.js';
import type { DeletionReport } from './types.js';

/** A write with what can be worked out before the transaction begins. */
type Prepared = (query: StoreQuery) => Promise<unknown>;

/** Databases in which bytes of what was deleted may still lie: cleared with the next writes. */
const unscrubbed = new WeakSet<SqlDatabase<StoreTables>>();

/**
 * Commits all writes, or none. A write that is itself at fault is told apart and does not hold up the others.
 * @throws whatever is in the way of all writes: disk, lock, network
 */
export async function applyWrites(
  database: SqlDatabase<StoreTables>,
  audit: RecordAudit,
  writes: readonly Write[],
): Promise<WriteOutcome[]> {
  const prepared = writes.map((write) => prepare(write, audit));
  let outcomes: WriteOutcome[];
  try {
    outcomes = await commitAll(database, prepared);
  } catch (error) {
    if (!isStatementFault(error)) throw error;
    outcomes = await commitEach(database, prepared, error);
  }
  const isDeletion = writes.some(({ kind }) => kind === 'delete' || kind === 'prune');
  const leftovers = isDeletion || unscrubbed.has(database) ? scrub(database, isDeletion) : null;
  if (leftovers === null) return outcomes;
  return outcomes.map((outcome, at) =>
    outcome.ok && writes[at]?.kind === 'delete'
      ? { ok: true, result: { ...(outcome.result as DeletionReport), leftovers } }
      : outcome,
  );
}

/**
 * Nothing of what a person had deleted stays in the log or in free pages. The deletion itself is committed: what is in the
 * way now must not cost its report. @returns what is in the way
 */
function scrub(database: SqlDatabase<StoreTables>, waits: boolean): string | null {
  try {
    database.scrub(waits);
    unscrubbed.delete(database);
    return null;
  } catch (error) {
    unscrubbed.add(database);
    return (error as Error).message;
  }
}

function commitAll(
  database: SqlDatabase<StoreTables>,
  prepared: readonly Prepared[],
): Promise<WriteOutcome[]> {
  return database.write(async (transaction) => {
    const outcomes: WriteOutcome[] = [];
    for (const write of prepared) outcomes.push(await outcomeOf(write(transaction)));
    return outcomes;
  });
}

async function commitEach(
  database: SqlDatabase<StoreTables>,
  prepared: readonly Prepared[],
  error: unknown,
): Promise<WriteOutcome[]> {
  if (prepared.length === 1) return [{ ok: false, fault: faultOf(error) }];
  const outcomes: WriteOutcome[] = [];
  for (const write of prepared)
    try {
      outcomes.push(...(await commitAll(database, [write])));
    } catch (cause) {
      if (!isStatementFault(cause)) throw cause;
      outcomes.push({ ok: false, fault: faultOf(cause) });
    }
  return outcomes;
}

/** Refusals of ours are thrown before their write touches anything. */
async function outcomeOf(write: Promise<unknown>): Promise<WriteOutcome> {
  try {
    return { ok: true, result: await write };
  } catch (error) {
    if (error instanceof SearchloopError) return { ok: false, fault: faultOf(error) };
    throw error;
  }
}

function faultOf(error: unknown): WriteFault {
  const { name, message, param } = error as { name: string; message: string; param?: string | null };
  return { name, message, param: param ?? null };
}

function prepare(write: Write, audit: RecordAudit): Prepared {
  const { at } = write;
  const done = (work: Promise<void>): Promise<null> => work.then(() => null);
  switch (write.kind) {
    case 'record': {
      const { encoded, feedback, origin } = write.params;
      const audited = audit.checkEncoded(encoded);
      return async (query) => {
        if (origin !== null && !(await hasRecord(query, origin))) {
          await noteUnwanted(query, encoded.head.id, origin, at);
          return false;
        }
        const isNew = await insertRecord(query, encoded, audited, Date.now());
        if (feedback !== null) await addFeedback(query, feedback);
        return isNew;
      };
    }
    case 'feedback':
      return (query) => addFeedback(query, write.params);
    case 'grades':
      return (query) => setGrades(query, write.params, at);
    case 'delete':
      return (query) => deleteRecords(query, write.params, at);
    case 'prune':
      return (query) => pruneRecords(query, write.params);
    case 'createKey':
      return (query) => done(createKey(query, write.params, at));
    case 'revokeKey':
      return (query) => done(revokeKey(query, write.params.id, at));
    case 'step':
      return (query) => commitStep(query, write.params, at);
    case 'documents':
      return (query) => done(putDocuments(query, write.params, at));
  }
}
