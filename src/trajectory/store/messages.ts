// What passes between the store and its worker.

import type { Method } from '../../runtime/index.js';
import type { StorageSettings } from '../../storage/index.js';
import type { TokenizerSource } from '../../tokenizer/index.js';
import type { EncodedRecord } from './codec.js';
import type { DeletionOrder } from './deletion-order.js';
import type { PruneReport, Retention } from './queries/deletion.js';
import type { FeedbackDraft } from './queries/feedback.js';
import type { Line } from './queries/lineage.js';
import type { GradeInput } from './queries/records.js';
import type {
  AdapterHead,
  AdapterRecord,
  DeletionReport,
  DocumentsInput,
  FeedbackEntry,
  FeedbackOutcome,
  KeyInput,
  KeyRecord,
  Page,
  RecordFilter,
  StepInput,
  StepOutcome,
  StoreCounts,
  StoredHead,
  StoredTexts,
  StoredTrajectory,
} from './types.js';

/** What the worker audits with: records of other models stay unchecked. */
export interface Auditor {
  readonly modelDigest: string;
  readonly tokenizer: TokenizerSource;
}

export interface StoreWorkerData {
  readonly storage: StorageSettings;
  auditor: Auditor | null;
}

/** Every kind of write: what it takes and gives. Each may be sent again after a failure without harm. */
export interface Writes {
  /** Gives whether the record is new. With `origin`: nothing is written where that record is not there (any more). */
  readonly record: [
    {
      readonly encoded: EncodedRecord;
      readonly feedback: FeedbackDraft | null;
      readonly origin: string | null;
    },
    boolean,
  ];
  readonly feedback: [FeedbackDraft, FeedbackOutcome];
  /** Gives how many of the records are there. */
  readonly grades: [readonly GradeInput[], number];
  readonly delete: [DeletionOrder, DeletionReport];
  readonly prune: [Retention, PruneReport];
  readonly createKey: [KeyInput, null];
  readonly revokeKey: [{ readonly id: string }, null];
  readonly step: [StepInput, StepOutcome];
  readonly documents: [DocumentsInput, null];
}

export type WriteKind = keyof Writes;

export type Write = {
  readonly [K in WriteKind]: {
    readonly kind: K;
    readonly params: Writes[K][0];
    /** Milliseconds since 1970, of the caller's clock. */
    readonly at: number;
  };
}[WriteKind];

/** The write itself was at fault; the others of its transaction went through. */
export interface WriteFault {
  readonly name: string;
  readonly message: string;
  readonly param: string | null;
}

export type WriteOutcome =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly fault: WriteFault };

export interface AuditRequest {
  readonly filter: RecordFilter;
}

export interface AuditSummary {
  readonly checked: number;
  readonly clean: number;
  readonly quarantined: readonly string[];
  /** Of another model than the auditor's. */
  readonly skipped: number;
}

export interface StoreMethods {
  /** All of them in one transaction; resolves when it is synced. */
  readonly commit: Method<readonly Write[], readonly WriteOutcome[]>;
  readonly useAuditor: Method<Auditor, null>;
  readonly audit: Method<AuditRequest, AuditSummary, { readonly checked: number }>;
  readonly list: Method<{ readonly filter: RecordFilter; readonly page: Page }, StoredHead[]>;
  readonly read: Method<readonly string[], StoredTrajectory[]>;
  readonly texts: Method<readonly string[], StoredTexts[]>;
  readonly feedbackOf: Method<readonly string[], FeedbackEntry[]>;
  readonly lastWordsOf: Method<readonly string[], FeedbackEntry[]>;
  readonly feedbackSince: Method<{ readonly sequence: number; readonly limit: number }, FeedbackEntry[]>;
  readonly deletedAmong: Method<readonly string[], string[]>;
  readonly keys: Method<void, KeyRecord[]>;
  readonly readDocument: Method<string, unknown>;
  readonly readDocumentsUnder: Method<string, Readonly<Record<string, unknown>>>;
  readonly adapters: Method<void, AdapterRecord[]>;
  readonly adapterHeads: Method<void, AdapterHead[]>;
  readonly lineOf: Method<Line, AdapterRecord[]>;
  readonly counts: Method<void, StoreCounts>;
}
