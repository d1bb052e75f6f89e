// The tables of the store. Token arrays are typed blobs, little-endian; what nothing filters by is one JSON text.
// A light row for listing and choosing, a heavy one beside it.

import type { Generated, Kysely } from 'kysely';

/** Whether the record kept the invariants: not looked at yet, sound, or kept apart with its faults. */
export type AuditState = 'unchecked' | 'clean' | 'quarantined';

export interface TrajectoryRow {
  /** Order of storing. Times may jump, this does not. */
  sequence: Generated<number>;
  id: string;
  created_at: number;
  stored_at: number;
  source: string;
  request_id: string | null;
  user_key: string | null;
  key_id: string | null;
  method: string;
  stop: string;
  /** sha256 of the question's text, first 32 hex digits. */
  question_digest: string;
  /** First characters, for lists. */
  question: string;
  answer: string | null;
  adapter_version: string;
  model_digest: string;
  index_snapshot_id: string | null;
  group_id: string | null;
  /** The answer whose question this one repeats: where that one goes, this one goes too. */
  origin_id: string | null;
  temperature: number | null;
  tokens: number;
  sampled: number;
  /** Searches that failed after all their tries; null: the record is older than the column. */
  failed_searches: number | null;
  bytes: number;
  audit_state: AuditState;
  /** JSON list of faults; null where there is none. */
  audit_faults: string | null;
  reward: number | null;
  reward_source: string | null;
  reward_rule: string | null;
  graded_at: number | null;
}

export interface BodyRow {
  sequence: number;
  /** int32 */
  token_ids: Uint8Array;
  /** uint8, index into `ORIGINS` */
  origin: Uint8Array;
  /** uint8 */
  loss_mask: Uint8Array;
  /** float32, nats */
  logprobs: Uint8Array;
  /** float32, nats; null where they equal `logprobs` */
  sampling_logprobs: Uint8Array | null;
  details: string;
}

export interface FeedbackRow {
  sequence: Generated<number>;
  id: string;
  trajectory_id: string;
  created_at: number;
  key_id: string;
  role: string;
  idempotency_key: string | null;
  /** sha256 of what was sent, to tell a repetition from a second use of the key. */
  request_digest: string;
  /** In [-1, 1]. */
  reward: number | null;
  /** Stars or thumbs as a reward in [0, 1]. */
  rating: number | null;
  /** JSON list of strings. */
  gold_answers: string | null;
  preferred_over: string | null;
  comment: string | null;
}

export interface KeyRow {
  id: string;
  name: string;
  /** sha256 of the key, hex. */
  digest: string;
  /** JSON list of scopes. */
  scopes: string;
  created_at: number;
  revoked_at: number | null;
}

export interface StoreTables {
  trajectories: TrajectoryRow;
  trajectory_bodies: BodyRow;
  feedback: FeedbackRow;
  api_keys: KeyRow;
  /** Adapter versions by content digest, and where they come from. */
  adapters: {
    digest: string;
    parent_digest: string | null;
    created_at: number;
    /** JSON */
    receipt: string;
    /** Records it was trained on that people had deleted since. */
    deleted_members: Generated<number>;
  };
  adapter_members: { adapter_digest: string; trajectory_id: string };
  /**
   * Ids of records and of feedback that a person had deleted lately: who rests on them still is told, and told apart from what only
   * grew old.
   */
  deletions: { id: string; deleted_at: number };
  /** States of others, JSON by name. */
  documents: { name: string; updated_at: number; value: string };
}

export type StoreQuery = Kysely<StoreTables>;
