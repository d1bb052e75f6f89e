// The store's interface.

import type { TrajectoryRecord } from '../record.js';
import type { Auditor, AuditSummary } from './messages.js';
import type { Retention } from './queries/deletion.js';
import type { GradeInput } from './queries/records.js';
import type {
  AdapterHead,
  AdapterRecord,
  DeletionReport,
  FeedbackEntry,
  FeedbackInput,
  FeedbackOutcome,
  KeyInput,
  KeyRecord,
  Page,
  RecordFilter,
  RecordNotes,
  StepInput,
  StepOutcome,
  StoreCounts,
  StoredHead,
  StoredTexts,
  StoredTrajectory,
} from './types.js';
import type { QueueHealth } from './write-queue.js';

/**
 * Writes resolve when they are committed and synced, in the order in which they were asked for. They throw
 * {UnavailableError} when too much is waiting or the store was closed before they were committed, and what the
 * write itself did wrong. Reads throw {UnavailableError} while the store cannot be used.
 */
export interface TrajectoryStore {
  health(): QueueHealth;

  /**
   * Stores a record, audited where the auditor knows its model.
   * @param feedback  gold answers that came with the request; in one transaction with the record
   * @returns whether the id is new; a record that is there stays as it is
   */
  put(record: TrajectoryRecord, notes: RecordNotes, feedback?: FeedbackInput | null): Promise<boolean>;
  /**
   * Stores a new answer to the question of another record, with which it goes, unless that one was deleted meanwhile: then
   * whoever asked wants nothing of it kept.
   * @returns whether the id is new
   */
  putRollout(record: TrajectoryRecord, notes: RecordNotes, origin: string): Promise<boolean>;
  /**
   * Adds nothing where it was sent before, under its idempotency key or as what this key said of the answer last.
   * @throws {NotFoundError} no such answer; {InvalidInputError} the idempotency key was used for something else, or the key has
   *   said more of the answer than anybody needs
   */
  addFeedback(input: FeedbackInput): Promise<FeedbackOutcome>;
  /**
   * Takes an entry in from an export, under its id and as nobody's word of rank; one that is here already stays as it is.
   * @throws {NotFoundError} no such answer
   */
  importFeedback(entry: FeedbackEntry): Promise<FeedbackOutcome>;
  /** The reward of each record by the rule in force. @returns how many of them are there */
  setGrades(grades: readonly GradeInput[]): Promise<number>;
  /**
   * Removes what matches, with rollouts and feedback; names the adapters that were trained on it. A filter
   * by key alone (and time) also takes what that key said of others' answers.
   */
  delete(filter: RecordFilter): Promise<DeletionReport>;
  /** Removes what a key said, within a time, and nothing else: answers stay, its own too. */
  deleteFeedback(
    filter: Required<Pick<RecordFilter, 'keyId'>> & Pick<RecordFilter, 'createdAfter' | 'createdBefore'>,
  ): Promise<DeletionReport>;
  /** Removes what is too old or too much. @returns number of records */
  prune(retention: Retention): Promise<number>;

  createKey(key: KeyInput): Promise<void>;
  /** @throws {NotFoundError} no such key */
  revokeKey(id: string): Promise<void>;
  keys(): Promise<KeyRecord[]>;

  /**
   * The ledger: adapter, its records and states of others, all in one transaction.
   * @throws {ConflictError} another document than expected is there
   */
  commitStep(step: StepInput): Promise<StepOutcome>;
  /** All of them, with their records: for people, not for each round of a loop. */
  adapters(): Promise<AdapterRecord[]>;
  adapterHeads(): Promise<AdapterHead[]>;
  /** A version and those it comes from, newest first, down to one of `until`, which is left out. */
  lineOf(version: string, until: readonly string[]): Promise<AdapterRecord[]>;
  /**
   * States of others by name; null removes one.
   * @param expected  what documents must read for anything to be written; null: not be there
   * @throws {ConflictError} they read otherwise
   */
  putDocuments(
    documents: Readonly<Record<string, unknown>>,
    expected?: Readonly<Record<string, unknown>>,
  ): Promise<void>;
  /** Null where there is none. */
  readDocument(name: string): Promise<unknown>;
  /** By name, all whose names begin with `prefix`: letters, digits, dots and colons. */
  readDocumentsUnder(prefix: string): Promise<Readonly<Record<string, unknown>>>;

  /** From now on records of this model are audited when they are written. */
  useAuditor(auditor: Auditor): Promise<void>;
  /** Audits again and keeps the outcome: what fails is quarantined, what passes now is not any more. */
  audit(
    filter: RecordFilter,
    options?: { readonly signal?: AbortSignal; readonly onProgress?: (checked: number) => void },
  ): Promise<AuditSummary>;
  list(filter: RecordFilter, page: Page): Promise<StoredHead[]>;
  /** In the order of the ids; those that are not there are left out. */
  read(ids: readonly string[]): Promise<StoredTrajectory[]>;
  /** Null where there is none. */
  get(id: string): Promise<StoredTrajectory | null>;
  /** What was asked and answered, in any order; a small part of what `read` gives. */
  texts(ids: readonly string[]): Promise<StoredTexts[]>;
  /** In the order in which they came. */
  feedbackOf(ids: readonly string[]): Promise<FeedbackEntry[]>;
  /** Of these the ones that labels and comparisons rest on: each key's last word of each kind. */
  lastWordsOf(ids: readonly string[]): Promise<FeedbackEntry[]>;
  /** Entries after one, so that a reader can follow. */
  feedbackSince(sequence: number, limit: number): Promise<FeedbackEntry[]>;
  /** Which of these answers and entries of feedback, by id, somebody had deleted in the last 30 days. */
  deletedAmong(ids: readonly string[]): Promise<string[]>;
  counts(): Promise<StoreCounts>;
  /** Commits what waits, for some seconds at most, and ends the thread. */
  close(): Promise<void>;
}
