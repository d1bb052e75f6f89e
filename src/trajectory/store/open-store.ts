// The store as the rest of the house sees it: calls from the main thread, the work in a thread of its own.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { UnavailableError } from '../../errors.js';
import type { StorageSettings } from '../../storage/index.js';
import { encodeRecord } from './codec.js';
import { type DeletionOrder, deletionOrder } from './deletion-order.js';
import type { StoreMethods, StoreWorkerData } from './messages.js';
import type { PruneReport, Retention } from './queries/deletion.js';
import type { TrajectoryStore } from './store.js';
import { StoreThread, type StoreThreadOptions } from './store-thread.js';
import type { DeletionReport, FeedbackInput } from './types.js';
import { WriteQueue } from './write-queue.js';

export interface StoreOptions extends StoreThreadOptions {
  readonly storage: StorageSettings;
  /** A server keeps what cannot be written now and tries again; a command fails. Default true. */
  readonly retry?: boolean;
  readonly queueBytes?: number;
  /** Wait for a commit after which the store counts as slow. */
  readonly commitTimeoutMs?: number;
}

const QUEUE_BYTES = 64 << 20;
const COMMIT_TIMEOUT_MS = 250;
const CLOSE_GRACE_MS = 10_000;
/** For a worker that starts anew, or a database that comes back. */
const ASK_AGAIN_MS = [500, 1000, 2000, 4000];

/**
 * Opens a store; the database is opened by the first call that needs it. A store that cannot be opened or written
 * says so in `health()` and keeps trying.
 */
export function openTrajectoryStore(options: StoreOptions): TrajectoryStore {
  const { retry = true } = options;
  const data: StoreWorkerData = { storage: options.storage, auditor: null };
  const thread = new StoreThread(data, options);
  const queue = new WriteQueue({
    send: async (writes) => (await thread.get()).call('commit', writes),
    maxBytes: options.queueBytes ?? QUEUE_BYTES,
    slowMs: options.commitTimeoutMs ?? COMMIT_TIMEOUT_MS,
    retry,
  });
  const read: Read = async (method, params) => (await thread.get()).call(method, params);
  return {
    health: () => queue.health(),
    ...writing(queue),
    ...deleting(queue, retry ? [] : ASK_AGAIN_MS),
    ...reading(read),
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
    async close() {
      await queue.close(CLOSE_GRACE_MS);
      await thread.close();
    },
  };
}

type Read = <K extends keyof StoreMethods>(
  method: K,
  params: StoreMethods[K]['params'],
) => Promise<StoreMethods[K]['result']>;

const writing = (queue: WriteQueue) =>
  ({
    put(record, notes, feedback = null) {
      const encoded = encodeRecord(record, notes);
      const draft = feedback === null ? null : draftOf(feedback);
      const carried = encoded.head.bytes + (draft === null ? 0 : jsonBytes(draft));
      return queue.push('record', { encoded, feedback: draft, origin: null }, carried);
    },
    putRollout(record, notes, origin) {
      const encoded = encodeRecord(record, { ...notes, originId: origin });
      return queue.push('record', { encoded, feedback: null, origin }, encoded.head.bytes);
    },
    addFeedback: (input) => pushFeedback(queue, draftOf(input)),
    importFeedback: ({ sequence: _sequence, id, createdAt, ...said }) =>
      pushFeedback(queue, {
        id,
        createdAt,
        input: { ...said, role: 'import', idempotencyKey: `import:${id}` },
      }),
    setGrades: (grades) => queue.push('grades', grades),
    createKey: async (key) => void (await queue.push('createKey', key)),
    revokeKey: async (id) => void (await queue.push('revokeKey', { id })),
    commitStep: (step) => queue.push('step', step),
    putDocuments: async (documents, expected = {}) =>
      void (await queue.push('documents', { documents, expected })),
  }) satisfies Partial<TrajectoryStore>;

/** Comments and gold answers may be as long as a record. */
const pushFeedback = (queue: WriteQueue, draft: ReturnType<typeof draftOf>) =>
  queue.push('feedback', draft, jsonBytes(draft));

const jsonBytes = (value: object): number => Buffer.byteLength(JSON.stringify(value));

const draftOf = (input: FeedbackInput) => ({ id: `fb-${randomUUID()}`, createdAt: Date.now(), input });

/** @param pausesMs  before the tries that follow where the store was away: none where the queue itself tries again */
function deleting(queue: WriteQueue, pausesMs: readonly number[]) {
  /** A failure may come after the commit: who asks again then gets the report that was kept. */
  async function deleteBy(order: DeletionOrder): Promise<DeletionReport> {
    for (let tries = 0; ; tries++)
      try {
        const report = await queue.push('delete', order);
        // It has come; were this to fail, a later deletion sees to it.
        void queue.push('documents', { documents: { [order.report]: null } }).catch(() => {});
        return report;
      } catch (error) {
        const pause = pausesMs[tries];
        if (pause === undefined || !(error instanceof UnavailableError)) throw error;
        await sleep(pause);
      }
  }
  return {
    delete: (filter) => deleteBy(deletionOrder(filter)),
    deleteFeedback: (filter) => deleteBy(deletionOrder(filter, true)),
    async prune(retention) {
      let removed = 0;
      for (let excess: number | null = null; ; ) {
        const known: Retention = excess === null ? retention : { ...retention, excess };
        const report: PruneReport = await queue.push('prune', known);
        removed += report.removed;
        if (!report.more) return removed;
        excess = report.excess;
      }
    },
  } satisfies Partial<TrajectoryStore>;
}

const reading = (read: Read) =>
  ({
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
  }) satisfies Partial<TrajectoryStore>;
