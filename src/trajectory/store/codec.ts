// A record as a light row and a heavy one, and back. Log-probabilities are kept as float32, all else exactly.

import type { Insertable, Selectable } from 'kysely';
import { FileFormatError } from '../../errors.js';
import { sha256Hex } from '../../util/digest.js';
import type { AuditFault } from '../audit.js';
import type { TokenOrigin, TrajectoryRecord } from '../record.js';
import type { BodyRow, TrajectoryRow } from './tables.js';
import type { RecordNotes, RecordSource, StoredHead, StoredTexts, StoredTrajectory } from './types.js';

/** Order of the codes in the blob; only ever appended to. */
const ORIGINS: readonly TokenOrigin[] = ['prompt', 'policy', 'policyInformation', 'environment'];
const UNKNOWN_ORIGIN = 255;
const PREVIEW = 500;

export interface EncodedRecord {
  readonly head: Omit<Insertable<TrajectoryRow>, 'stored_at' | 'audit_state' | 'audit_faults'>;
  readonly body: Omit<Insertable<BodyRow>, 'sequence'>;
}

type Details = Omit<
  TrajectoryRecord,
  | 'id'
  | 'createdAt'
  | 'method'
  | 'stop'
  | 'modelDigest'
  | 'indexSnapshotId'
  | 'groupId'
  | 'tokenIds'
  | 'origin'
  | 'lossMask'
  | 'logprobs'
  | 'samplingLogprobs'
> & { readonly notes: Pick<RecordNotes, 'askedToStore' | 'messages' | 'forceAnswer'> };

/** First 32 hex digits of the sha256 of a question's text. */
const questionDigest = (question: string): string => sha256Hex(question).slice(0, 32);

export function encodeRecord(record: TrajectoryRecord, notes: RecordNotes): EncodedRecord {
  const { id, createdAt, method, stop, modelDigest, indexSnapshotId, groupId, ...rest } = record;
  const { tokenIds, origin, lossMask, logprobs, samplingLogprobs, ...fields } = rest;
  const details: Details = {
    ...fields,
    notes: {
      askedToStore: notes.askedToStore,
      messages: notes.messages,
      forceAnswer: notes.forceAnswer,
    },
  };
  const values = floats(logprobs);
  const sampling = floats(samplingLogprobs);
  const body = {
    token_ids: bytesOf(Int32Array.from(tokenIds)),
    origin: Uint8Array.from(origin, (item) => {
      const code = ORIGINS.indexOf(item);
      return code < 0 ? UNKNOWN_ORIGIN : code;
    }),
    loss_mask: Uint8Array.from(lossMask),
    logprobs: values,
    sampling_logprobs: Buffer.compare(values, sampling) === 0 ? null : sampling,
    details: JSON.stringify(details),
  };
  const { temperature } = record.sampling;
  const head = {
    id: clean(id),
    created_at: createdAt,
    source: notes.source,
    request_id: cleanOrNull(notes.requestId),
    user_key: cleanOrNull(notes.userKey),
    key_id: cleanOrNull(notes.keyId),
    origin_id: cleanOrNull(notes.originId),
    method: clean(method),
    stop: clean(stop),
    question_digest: questionDigest(record.question),
    question: preview(record.question),
    answer: record.answer === null ? null : preview(record.answer),
    adapter_version: clean(record.versions[0]?.adapterVersion ?? ''),
    model_digest: clean(modelDigest),
    index_snapshot_id: cleanOrNull(indexSnapshotId),
    group_id: cleanOrNull(groupId),
    temperature: typeof temperature === 'number' ? temperature : null,
    tokens: tokenIds.length,
    sampled: origin.filter((item) => item === 'policy' || item === 'policyInformation').length,
    failed_searches: record.searches.filter(({ error }) => error !== null).length,
    bytes: sizeOf(body),
    reward: null,
    reward_source: null,
    reward_rule: null,
    graded_at: null,
  };
  return { head, body };
}

export function decodeHead(row: Selectable<TrajectoryRow>): StoredHead {
  return {
    sequence: row.sequence,
    id: row.id,
    createdAt: row.created_at,
    storedAt: row.stored_at,
    source: row.source as RecordSource,
    requestId: row.request_id,
    userKey: row.user_key,
    keyId: row.key_id,
    method: row.method,
    stop: row.stop,
    questionDigest: row.question_digest,
    question: row.question,
    answer: row.answer,
    adapterVersion: row.adapter_version,
    modelDigest: row.model_digest,
    indexSnapshotId: row.index_snapshot_id,
    groupId: row.group_id,
    temperature: row.temperature,
    tokens: row.tokens,
    sampled: row.sampled,
    failedSearches: row.failed_searches,
    auditState: row.audit_state,
    auditFaults: row.audit_faults === null ? [] : (JSON.parse(row.audit_faults) as AuditFault[]),
    grade:
      row.reward === null
        ? null
        : {
            value: row.reward,
            source: row.reward_source ?? '',
            rule: row.reward_rule ?? '',
            gradedAt: row.graded_at ?? 0,
          },
  };
}

/** @throws {FileFormatError} a blob whose length is no multiple of its element's */
export function decodeRecord(
  row: Selectable<TrajectoryRow>,
  body: Omit<Selectable<BodyRow>, 'sequence'>,
): StoredTrajectory {
  const head = decodeHead(row);
  const { notes, ...details } = JSON.parse(body.details) as Details;
  const logprobs = floatsOf(body.logprobs, row.id);
  return {
    head,
    record: {
      ...details,
      id: head.id,
      createdAt: head.createdAt,
      method: head.method,
      stop: head.stop as TrajectoryRecord['stop'],
      modelDigest: head.modelDigest,
      indexSnapshotId: head.indexSnapshotId,
      groupId: head.groupId,
      tokenIds: Array.from(new Int32Array(aligned(body.token_ids, 4, row.id))),
      origin: Array.from(body.origin, (code) => ORIGINS[code] ?? ('unknown' as TokenOrigin)),
      lossMask: Array.from(body.loss_mask) as (0 | 1)[],
      logprobs,
      samplingLogprobs:
        body.sampling_logprobs === null ? [...logprobs] : floatsOf(body.sampling_logprobs, row.id),
    },
    notes: {
      ...notes,
      source: head.source,
      requestId: head.requestId,
      userKey: head.userKey,
      keyId: head.keyId,
      originId: row.origin_id,
    },
  };
}

/** Of the body's details alone. */
export function decodeTexts(id: string, details: string): StoredTexts {
  const { question, answer, notes } = JSON.parse(details) as Details;
  return { id, question, answer, messages: notes.messages };
}

const floats = (values: readonly number[]): Uint8Array => bytesOf(Float32Array.from(values));
const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
const floatsOf = (bytes: Uint8Array, id: string): number[] =>
  Array.from(new Float32Array(aligned(bytes, 4, id)));

/** A copy that begins at a multiple of the element's size. */
function aligned(bytes: Uint8Array, size: number, id: string): ArrayBuffer {
  if (bytes.byteLength % size !== 0)
    throw new FileFormatError(
      `record ${id}: a blob of ${bytes.byteLength} bytes is no list of ${size}-byte numbers`,
    );
  return Uint8Array.from(bytes).buffer;
}

/** PostgreSQL's texts hold no NUL. */
const clean = (text: string): string => text.replaceAll('\0', '\ufffd');
const cleanOrNull = (text: string | null): string | null => (text === null ? null : clean(text));
const preview = (text: string): string =>
  clean(text.length > PREVIEW ? text.slice(0, PREVIEW).replace(/[\uD800-\uDBFF]$/, '') : text);

function sizeOf(body: EncodedRecord['body']): number {
  const blobs = [body.token_ids, body.origin, body.loss_mask, body.logprobs, body.sampling_logprobs];
  return blobs.reduce<number>((sum, blob) => sum + (blob?.byteLength ?? 0), Buffer.byteLength(body.details));
}
