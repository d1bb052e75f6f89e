// The store as the rest of the house sees it: calls from the main thread, the work in a thread of its own.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { UnavailableError } from '../../errors.js';
import { startWorker, type WorkerClient } from '../../runtime/index.js';
import type { StorageSettings } from '../../storage/index.js';
import { encodeRecord } from './codec.js';
import { type DeletionOrder, deletionOrder } from './deletion-order.js';
import type { StoreMethods, StoreWorkerData, WriteKind, Writes } from './messages.js';
import type { PruneReport, Retention } from './queries/deletion.js';
import type { TrajectoryStore } from './store.js';
import type { DeletionReport, FeedbackInput } from './types.js';
import { createWriteQueue } from './write-queue.js';

export interface StoreOptions {
  readonly storage: StorageSettings;
  /** A server keeps what cannot be written now and tries again; a command fails. Default true. */
  readonly retry?: boolean;
  readonly queueBytes?: number;
  /** Wait for a commit after which the store counts as slow. */
  readonly commitTimeoutMs?: number;
  /** Told of what went wrong behind the scenes. */
  readonly onTrouble?: (error: Error) => void;
  /** Entry of the worker; tests put faults in between. */
  readonly worker?: string;
}

const WORKER = 'trajectory/store/worker';
const QUEUE_BYTES = 64 << 20;
const COMMIT_TIMEOUT_MS = 250;
const CLOSE_GRACE_MS = 10_000;
const RESTART_MS = 200;
/** For a worker that starts anew, or a database that comes back. */
const ASK_AGAIN_MS = [500, 1000, 2000, 4000];

/**
 * Opens a store; the database is opened by the first call that needs it. A store that cannot be opened or written
 * says so in `health()` and keeps trying.
 */
export function openTrajectoryStore(options: StoreOptions): TrajectoryStore {
  const { retry = true } = options;
  const data: StoreWorkerData = { storage: options.storage, auditor: null };
  const thread = workerOf(data, options);
  const queue = createWriteQueue({
    send: async (writes) => (await thread.get()).call('commit', writes),
    maxBytes: options.queueBytes ?? QUEUE_BYTES,
    slowMs: options.commitTimeoutMs ?? COMMIT_TIMEOUT_MS,
    retry,
  });
  const write = <K extends WriteKind>(kind: K, params: Writes[K][0], bytes?: number) =>
    queue.push(kind, params, bytes);
  const read = async <K extends keyof StoreMethods>(method: K, params: StoreMethods[K]['params']) =>
    (await thread.get()).call(method, params);

  /** A failure may come after the commit: who asks again then gets the report that was kept. */
  async function deleteBy(order: DeletionOrder): Promise<DeletionReport> {
    const pauses = retry ? [] : [...ASK_AGAIN_MS];
    for (;;)
      try {
        const report = await write('delete', order);
        // It has come; were this to fail, a later deletion sees to it.
        void write('documents', { documents: { [order.report]: null } }).catch(() => {});
        return report;
      } catch (error) {
        const pause = pauses.shift();
        if (pause === undefined || !(error instanceof UnavailableError)) throw error;
        await sleep(pause);
      }
  }

  return {
    health: queue.health,
    put(record, notes, feedback = null) {
      const encoded = encodeRecord(record, notes);
      const draft = feedback === null ? null : draftOf(feedback);
      return write('record', { encoded, feedback: draft, origin: null }, encoded.head.bytes);
    },
    putRollout(record, notes, origin) {
      const encoded = encodeRecord(record, { ...notes, originId: origin });
      return write('record', { encoded, feedback: null, origin }, encoded.head.bytes);
    },
    addFeedback: (input) => write('feedback', draftOf(input)),
    importFeedback: ({ sequence: _sequence, id, createdAt, ...said }) =>
      write('feedback', {
        id,
        createdAt,
        input: { ...said, role: 'import', idempotencyKey: `import:${id}` },
      }),
    setGrades: (grades) => write('grades', grades),
    delete: (filter) => deleteBy(deletionOrder(filter)),
    deleteFeedback: (filter) => deleteBy(deletionOrder(filter, true)),
    async prune(retention) {
      let removed = 0;
      for (let excess: number | null = null; ; ) {
        const known: Retention = excess === null ? retention : { ...retention, excess };
        const report: PruneReport = await write('prune', known);
        removed += report.removed;
        if (!report.more) return removed;
        excess = report.excess;
      }
    },
    createKey: async (key) => void (await write('createKey', key)),
    revokeKey: async (id) => void (await write('revokeKey', { id })),
    commitStep: (step) => write('step', step),
    putDocuments: async (documents, expected = {}) =>
      void (await write('documents', { documents, expected })),

    async useAuditor(auditor) {
      // A thread that starts anew begins with it.
      data.auditor = auditor;
      await read('useAuditor', auditor);
    },
    audit: async (filter, { signal, onProgress } = {}) =>
      (await thread.get()).call(
        'audit',
        { filter },
        {
          ...(signal ? { signal } : {}),
          ...(onProgress ? { onEvent: ({ checked }: { checked: number }) => onProgress(checked) } : {}),
        },
      ),
    list: (filter, page) => read('list', { filter, page }),
    read: (ids) => read('read', ids),
    get: async (id) => (await read('read', [id]))[0] ?? null,
    texts: (ids) => read('texts', ids),
    feedbackOf: (ids) => read('feedbackOf', ids),
    lastWordsOf: (ids) => read('lastWordsOf', ids),
    feedbackSince: (sequence, limit) => read('feedbackSince', { sequence, limit }),
    deletedAmong: (ids) => read('deletedAmong', ids),
    keys: () => read('keys', undefined),
    readDocument: (name) => read('readDocument', name),
    readDocumentsUnder: (prefix) => read('readDocumentsUnder', prefix),
    adapters: () => read('adapters', undefined),
    adapterHeads: () => read('adapterHeads', undefined),
    lineOf: (version, until) => read('lineOf', { version, until }),
    counts: () => read('counts', undefined),
    async close() {
      await queue.close(CLOSE_GRACE_MS);
      await thread.close();
    },
  };
}

const draftOf = (input: FeedbackInput) => ({ id: `fb-${randomUUID()}`, createdAt: Date.now(), input });

/** The worker, started when first asked for and again when it died too often to come back by itself. */
function workerOf(data: StoreWorkerData, { worker = WORKER, onTrouble }: StoreOptions) {
  let starting: Promise<WorkerClient<StoreMethods>> | null = null;
  let closed = false;

  async function get(): Promise<WorkerClient<StoreMethods>> {
    if (closed) throw new UnavailableError('the store is closed');
    starting ??= startWorker<StoreMethods>(worker, data, {
      backOffMs: RESTART_MS,
      onState: (_state, error) => {
        if (error !== null) onTrouble?.(error);
      },
    });
    const current = starting;
    try {
      const client = await current;
      if (client.state !== 'failed') return client;
    } catch (error) {
      if (starting === current) starting = null;
      throw error;
    }
    if (starting === current) starting = null;
    return get();
  }

  return {
    get,
    async close() {
      closed = true;
      const client = await starting?.catch(() => null);
      await client?.close();
    },
  };
}
