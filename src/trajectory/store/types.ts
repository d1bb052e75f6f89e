// What goes into the store and what comes out.

import type { AuditFault } from '../audit.js';
import type { TrajectoryRecord } from '../record.js';
import type { AuditState } from './tables.js';

/** `explore`: answered at temperature 1 so that something can be learned; `train`: a rollout of the loop's own. */
export type RecordSource = 'serve' | 'explore' | 'train' | 'import';

export interface StoredMessage {
  readonly role: string;
  readonly content: string;
}

/** What is known of a record beyond its rollout. */
export interface RecordNotes {
  readonly source: RecordSource;
  /** The request said so itself (true), or the server's setting did (false). Without consent nothing is stored. */
  readonly askedToStore: boolean;
  /** Id of the whole answer, where it had several choices. */
  readonly requestId: string | null;
  /** Whose question it was, as the client named them. */
  readonly userKey: string | null;
  /** API key that asked. */
  readonly keyId: string | null;
  /** The answer whose question a rollout repeats: where that one goes, this one goes too. */
  readonly originId: string | null;
  /** The whole conversation; the last user message holds the question. */
  readonly messages: readonly StoredMessage[];
  readonly forceAnswer: boolean;
}

export const NO_NOTES: RecordNotes = {
  source: 'serve',
  askedToStore: false,
  requestId: null,
  userKey: null,
  keyId: null,
  originId: null,
  messages: [],
  forceAnswer: false,
};

export interface Grade {
  readonly value: number;
  /** `feedback`, `gold`, `judge`, `majority`, or what a caller calls it. */
  readonly source: string;
  /** The rule and its settings, so that a change of rule shows. */
  readonly rule: string;
  readonly gradedAt: number;
}

/** A record as lists show it. */
export interface StoredHead {
  readonly sequence: number;
  readonly id: string;
  readonly createdAt: number;
  readonly storedAt: number;
  readonly source: RecordSource;
  readonly requestId: string | null;
  readonly userKey: string | null;
  readonly keyId: string | null;
  readonly method: string;
  readonly stop: string;
  readonly questionDigest: string;
  /** First characters. */
  readonly question: string;
  readonly answer: string | null;
  readonly adapterVersion: string;
  readonly modelDigest: string;
  readonly indexSnapshotId: string | null;
  readonly groupId: string | null;
  readonly temperature: number | null;
  readonly tokens: number;
  readonly sampled: number;
  /** Searches that failed after all their tries; null: not known without reading the record. */
  readonly failedSearches: number | null;
  readonly auditState: AuditState;
  readonly auditFaults: readonly AuditFault[];
  readonly grade: Grade | null;
}

/** What was asked and answered, whole, without the tokens. */
export interface StoredTexts {
  readonly id: string;
  readonly question: string;
  readonly answer: string | null;
  readonly messages: readonly StoredMessage[];
}

export interface StoredTrajectory {
  readonly head: StoredHead;
  readonly record: TrajectoryRecord;
  readonly notes: RecordNotes;
}

/**
 * Who said it: a key with the scope `feedback` or `admin`; the asker within the request (`request`); `import`.
 * Only an admin's labels outweigh others.
 */
export type FeedbackRole = 'feedback' | 'admin' | 'request' | 'import';

export interface FeedbackInput {
  /** Id of a record, or of an answer with one choice. */
  readonly trajectoryId: string;
  readonly keyId: string;
  readonly role: FeedbackRole;
  readonly idempotencyKey: string | null;
  /** In [-1, 1]. */
  readonly reward: number | null;
  /** Thumbs or stars as a reward in [0, 1]. */
  readonly rating: number | null;
  readonly goldAnswers: readonly string[] | null;
  /** Id of another answer to the same question that this one is better than. */
  readonly preferredOver: string | null;
  readonly comment: string | null;
}

export interface FeedbackEntry extends FeedbackInput {
  readonly sequence: number;
  readonly id: string;
  readonly createdAt: number;
}

export interface FeedbackOutcome {
  readonly entry: FeedbackEntry;
  /** The same was sent before with this idempotency key; nothing was added. */
  readonly repeated: boolean;
}

export interface RecordFilter {
  readonly ids?: readonly string[];
  readonly requestId?: string;
  readonly userKey?: string;
  readonly keyId?: string;
  readonly method?: string;
  readonly source?: RecordSource;
  /** All but those of this source. */
  readonly notSource?: RecordSource;
  readonly auditState?: AuditState;
  readonly questionDigest?: string;
  readonly adapterVersion?: string;
  /** Milliseconds since 1970. */
  readonly createdBefore?: number;
  readonly createdAfter?: number;
  /** With a reward, gold answers or a preference in its feedback. */
  readonly labelled?: boolean;
}

export interface Page {
  /** Records stored after this one (`order: 'oldest'`) or before it (`newest`). */
  readonly cursor?: number;
  readonly limit: number;
  /** So many of them are passed over. */
  readonly skip?: number;
  readonly order: 'oldest' | 'newest';
}

/** What a deletion took with it. */
export interface DeletionReport {
  readonly trajectories: readonly string[];
  readonly feedback: number;
  /** Adapter versions that were trained on a deleted record, and those that descend from them. */
  readonly adapters: readonly ReachedAdapter[];
  /** Why bytes of it may still lie in the log of the database, to be cleared later; null where none do. */
  readonly leftovers: string | null;
}

export interface ReachedAdapter {
  readonly digest: string;
  /** Deleted records among those it was trained on; 0 where only an ancestor was. */
  readonly records: number;
}

export interface AdapterInput {
  readonly digest: string;
  readonly parentDigest: string | null;
  /** JSON value: seeds, settings, metrics, tests, who published it. */
  readonly receipt: unknown;
}

/** States of others, all of them or none. */
export interface DocumentsInput {
  /** By name; null removes one. */
  readonly documents: Readonly<Record<string, unknown>>;
  /** What others must read (null: not be there), else nothing is written. */
  readonly expected?: Readonly<Record<string, unknown>>;
}

/** A committed training step: all of it or nothing. */
export interface StepInput extends DocumentsInput {
  readonly adapter: AdapterInput;
  /** What this step was trained on; those of the ancestors are known by the parent. */
  readonly trajectoryIds: readonly string[];
}

export interface StepOutcome {
  /** Records that were deleted meanwhile: the adapter must not be published as if nothing had happened. */
  readonly missing: readonly string[];
}

export interface AdapterRecord extends AdapterInput {
  readonly createdAt: number;
  readonly trajectoryIds: readonly string[];
  /** Records it was trained on that people had deleted since; those that only grew old do not count. */
  readonly deletedRecords: number;
}

/** Without the records: these can be many. */
export type AdapterHead = Omit<AdapterRecord, 'trajectoryIds'>;

export const SCOPES = ['ask', 'feedback', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];

export interface KeyInput {
  readonly id: string;
  readonly name: string;
  /** sha256 of the key, hex. */
  readonly digest: string;
  readonly scopes: readonly Scope[];
}

export interface KeyRecord extends KeyInput {
  readonly createdAt: number;
  readonly revokedAt: number | null;
}

export interface StoreCounts {
  readonly trajectories: number;
  readonly quarantined: number;
  readonly unchecked: number;
  readonly feedback: number;
  /** Bytes of all records. */
  readonly recordBytes: number;
  /** Bytes of the database. */
  readonly sizeBytes: number;
}
