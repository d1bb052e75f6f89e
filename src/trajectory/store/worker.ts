// Worker entry: the one thread that touches the database. It opens it when first needed and anew after a failure,
// so that a disk or a server that comes back is found again.

import { SearchloopError, UnavailableError } from '../../errors.js';
import { serveWorker } from '../../runtime/index.js';
import { connectDatabase, isStatementFault, migrate, type SqlDatabase } from '../../storage/index.js';
import { OneAtATime } from '../../util/one-at-a-time.js';
import { applyWrites } from './apply.js';
import { createRecordAudit, type RecordAudit } from './auditing.js';
import type { AuditSummary, StoreMethods, StoreWorkerData } from './messages.js';
import { MIGRATIONS } from './migrations.js';
import { deletedAmong } from './queries/deleted.js';
import { feedbackOf, feedbackSince, lastWordsOf } from './queries/feedback.js';
import { listKeys } from './queries/keys.js';
import { adapterHeads, lineOf, listAdapters, readDocument, readDocumentsUnder } from './queries/lineage.js';
import { countAll, listRecords, matchingIds, readRecords, readTexts, setAudit } from './queries/records.js';
import type { StoreQuery, StoreTables } from './tables.js';
import type { RecordFilter } from './types.js';

type Store = SqlDatabase<StoreTables>;
type Using = <Result>(work: (database: Store) => Promise<Result>) => Promise<Result>;

/** Records audited between two looks at what else is to be done. */
const AUDITED_AT_ONCE = 64;

serveWorker<StoreMethods, StoreWorkerData>(({ storage, auditor }) => {
  const audit = createRecordAudit(auditor);
  const { using, close } = openOnDemand(storage);
  const reading =
    <Params, Result>(read: (query: StoreQuery, params: Params) => Promise<Result>) =>
    (params: Params): Promise<Result> =>
      using(({ query }) => read(query, params));

  return {
    methods: {
      commit: (writes) => using((database) => applyWrites(database, audit, writes)),
      useAuditor: (next) => {
        audit.use(next);
        return null;
      },
      audit: ({ filter }, { signal, emit }) => auditAll(using, audit, filter, signal, emit),
      list: reading((query, { filter, page }) => listRecords(query, filter, page)),
      read: reading(readRecords),
      texts: reading(readTexts),
      feedbackOf: reading(feedbackOf),
      lastWordsOf: reading(lastWordsOf),
      feedbackSince: reading((query, { sequence, limit }) => feedbackSince(query, sequence, limit)),
      deletedAmong: reading(deletedAmong),
      keys: reading(listKeys),
      readDocument: reading(readDocument),
      readDocumentsUnder: reading(readDocumentsUnder),
      adapters: reading(listAdapters),
      adapterHeads: reading(adapterHeads),
      lineOf: reading(lineOf),
      counts: () =>
        using(async (database) => ({
          ...(await countAll(database.query)),
          sizeBytes: await database.sizeBytes(),
        })),
    },
    close,
  };
});

/** One piece of work at a time: a database is never closed under another's hands. */
function openOnDemand(storage: StoreWorkerData['storage']): { using: Using; close(): Promise<void> } {
  let database: Store | null = null;
  const turns = new OneAtATime();

  async function open(): Promise<Store> {
    const opened = await connectDatabase<StoreTables>(storage);
    try {
      await migrate(opened, 'trajectory', MIGRATIONS);
    } catch (error) {
      await opened.close().catch(() => {});
      throw error;
    }
    return opened;
  }

  async function attempt<Result>(work: (database: Store) => Promise<Result>): Promise<Result> {
    try {
      database ??= await open();
      return await work(database);
    } catch (error) {
      if (error instanceof SearchloopError || isStatementFault(error)) throw error;
      const broken = database;
      database = null;
      await broken?.close().catch(() => {});
      throw new UnavailableError(`the store cannot be used: ${(error as Error).message}`, { cause: error });
    }
  }

  return {
    using: (work) => turns.run(() => attempt(work)),
    async close() {
      await turns.settled();
      await database?.close();
    },
  };
}

async function auditAll(
  using: Using,
  audit: RecordAudit,
  filter: RecordFilter,
  signal: AbortSignal,
  emit: (event: { checked: number }) => void,
): Promise<AuditSummary> {
  const ids = await using(({ query }) => matchingIds(query, filter));
  const quarantined: string[] = [];
  let clean = 0;
  let skipped = 0;
  let checked = 0;
  for (let start = 0; start < ids.length; start += AUDITED_AT_ONCE) {
    signal.throwIfAborted();
    const some = ids.slice(start, start + AUDITED_AT_ONCE);
    await using(async (database) => {
      const results = (await readRecords(database.query, some)).map(({ record }) => ({
        id: record.id,
        result: audit.check(record),
      }));
      const known = results.filter(({ result }) => result.state !== 'unchecked');
      await database.write(async (transaction) => {
        for (const { id, result } of known) await setAudit(transaction, id, result);
      });
      skipped += results.length - known.length;
      for (const { id, result } of known)
        if (result.state === 'clean') clean += 1;
        else quarantined.push(id);
    });
    checked += some.length;
    emit({ checked });
  }
  return { checked, clean, quarantined, skipped };
}
