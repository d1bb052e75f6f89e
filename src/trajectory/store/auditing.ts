// The audit as the worker does it: on every write, and again on demand.

import { createTokenizer, type Tokenizer } from '../../tokenizer/index.js';
import { audit } from '../audit.js';
import type { TrajectoryRecord } from '../record.js';
import { decodeRecord, type EncodedRecord } from './codec.js';
import type { Auditor } from './messages.js';
import type { AuditResult } from './queries/records.js';
import type { BodyRow, TrajectoryRow } from './tables.js';

const UNCHECKED: AuditResult = { state: 'unchecked', faults: [] };

export interface RecordAudit {
  use(auditor: Auditor): void;
  check(record: TrajectoryRecord): AuditResult;
  /** As the record will come back from the store. */
  checkEncoded(encoded: EncodedRecord): AuditResult;
}

export function createRecordAudit(first: Auditor | null): RecordAudit {
  let current: { readonly modelDigest: string; readonly tokenizer: Tokenizer } | null = null;
  const use = ({ modelDigest, tokenizer }: Auditor): void => {
    current = { modelDigest, tokenizer: createTokenizer(tokenizer) };
  };
  if (first !== null) use(first);

  function check(record: TrajectoryRecord): AuditResult {
    if (current === null || record.modelDigest !== current.modelDigest) return UNCHECKED;
    const faults = audit(record, current.tokenizer);
    // Nothing can be learned from it: a step made of such records would train on nothing.
    if (faults.length === 0 && !record.lossMask.includes(1))
      faults.push({ rule: 'sampled', message: 'expected at least one token of the policy, got none' });
    return { state: faults.length === 0 ? 'clean' : 'quarantined', faults };
  }

  return {
    use,
    check,
    checkEncoded: ({ head, body }) => {
      if (current === null) return UNCHECKED;
      const row = { ...head, sequence: 0, stored_at: 0, audit_state: 'unchecked', audit_faults: null };
      return check(decodeRecord(row as TrajectoryRow & { sequence: number }, body as BodyRow).record);
    },
  };
}
