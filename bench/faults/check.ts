// Whether a store holds all that it said it holds, and nothing of it is damaged.

import { join } from 'node:path';
import { type Database, openDatabase } from '#searchloop/storage/index.js';
import { type Auditor, openTrajectoryStore } from '#searchloop/trajectory/index.js';
import type { Acknowledged } from './acknowledged.js';

export interface Found {
  /** Ids of all stored answers. */
  readonly answers: ReadonlySet<string>;
  readonly lostAnswers: readonly string[];
  readonly lostFeedback: readonly string[];
  /** Damage, contradictions, records that failed the audit: each in words. */
  readonly faults: readonly string[];
}

export const storeFile = (data: string): string => join(data, 'trajectories.db');

interface AnswerRow {
  readonly id: string;
  readonly answer: string | null;
  readonly adapter_version: string;
  readonly audit_state: string;
  readonly audit_faults: string | null;
  readonly has_body: number;
}

/** Stored answers are shown up to so many characters in the row that is compared. */
const SHOWN = 100;

/** Reads the database beside a server that is running, or after one. */
export function checkStore(file: string, acknowledged: Acknowledged): Found {
  const database = openDatabase(file, { readonly: true });
  try {
    const answers = new Map(
      database
        .prepare<[], AnswerRow>(
          `select t.id, answer, adapter_version, audit_state, audit_faults, b.sequence is not null as has_body
           from trajectories t left join trajectory_bodies b on b.sequence = t.sequence`,
        )
        .all()
        .map((row) => [row.id, row]),
    );
    const entries = database
      .prepare<[], { id: string; trajectory_id: string; idempotency_key: string | null }>(
        'select id, trajectory_id, idempotency_key from feedback',
      )
      .all();
    const kept = new Map(entries.map((row) => [row.id, row]));
    const sent = acknowledged.feedback().filter(({ entry }) => entry !== null);
    return {
      answers: new Set(answers.keys()),
      lostAnswers: acknowledged.answers().flatMap(({ id }) => (answers.has(id) ? [] : [id])),
      lostFeedback: sent.flatMap(({ entry, key, answerId }) => {
        const row = kept.get(entry as string);
        return row?.idempotency_key === key && row.trajectory_id === answerId ? [] : [entry as string];
      }),
      faults: [
        ...damage(database),
        ...[...answers.values()].flatMap(recordFaults),
        ...acknowledged
          .answers()
          .flatMap(({ id, text, version }) => contradiction(answers.get(id), text, version)),
        ...repeated(entries),
      ],
    };
  } finally {
    database.close();
  }
}

function damage(database: Database): string[] {
  const integrity = database.pragma('integrity_check') as { integrity_check: string }[];
  const broken = database.pragma('foreign_key_check') as unknown[];
  return [
    ...integrity.flatMap(({ integrity_check: said }) => (said === 'ok' ? [] : [`integrity_check: ${said}`])),
    ...(broken.length === 0 ? [] : [`foreign_key_check: ${broken.length} rows`]),
  ];
}

function recordFaults({ id, has_body, audit_state, audit_faults }: AnswerRow): string[] {
  return [
    ...(has_body === 1 ? [] : [`${id} has no body`]),
    ...(audit_state === 'quarantined' ? [`${id} is quarantined: ${audit_faults}`] : []),
  ];
}

function contradiction(row: AnswerRow | undefined, text: string | null, version: string): string[] {
  if (row === undefined) return [];
  const [said, stored] = [text ?? '', row.answer ?? ''].map((words) => words.trim().slice(0, SHOWN));
  return [
    ...(said === stored ? [] : [`${row.id}: the client read "${said}", "${stored}" is stored`]),
    ...(version === row.adapter_version
      ? []
      : [`${row.id}: answered by ${version}, ${row.adapter_version} is stored`]),
  ];
}

/** No idempotency key may have added two entries. */
function repeated(entries: readonly { idempotency_key: string | null }[]): string[] {
  const keys = entries.flatMap(({ idempotency_key: key }) => (key === null ? [] : [key]));
  return new Set(keys).size === keys.length ? [] : ['feedback with one idempotency key was added twice'];
}

/** Audits the records of the last so many milliseconds anew. @returns those that fail, in words */
export async function auditStore(file: string, auditor: Auditor, lately: number): Promise<string[]> {
  const store = openTrajectoryStore({ storage: { kind: 'sqlite', path: file }, retry: false });
  try {
    await store.useAuditor(auditor);
    const { quarantined, skipped } = await store.audit({ createdAfter: Date.now() - lately });
    return [
      ...quarantined.map((id) => `${id} fails the audit`),
      ...(skipped === 0 ? [] : [`${skipped} records are of another model`]),
    ];
  } finally {
    await store.close();
  }
}
