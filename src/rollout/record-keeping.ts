// Hands records to whoever keeps them, without letting a slow or broken store hold up or cost an answer.

import type { TrajectoryRecord } from '../trajectory/index.js';
import { within } from '../util/within.js';
import type { RolloutRequest } from './events.js';

export interface RecordKeeping {
  /**
   * Keeps the record of every rollout that took a slot, also of one whose reader left early and so never saw
   * `done`. Not called for a rollout that failed. Resolves when the record is safe. `done` waits for it, at most
   * `recordTimeoutMs`, and says what came of it: a slow or broken store never costs an answer.
   */
  readonly onRecord?: (record: TrajectoryRecord, request: RolloutRequest) => Promise<void> | void;
  /** Default 250. */
  readonly recordTimeoutMs?: number;
  /** Told when `onRecord` failed, also after the wait for it was over. */
  readonly onRecordFailure?: (error: Error, record: TrajectoryRecord) => void;
}

const TIMEOUT_MS = 250;

/** @returns whether the record is known to be safe; null where it shall not be kept. Never rejects. */
export async function keepRecord(
  record: TrajectoryRecord,
  request: RolloutRequest,
  { onRecord, recordTimeoutMs = TIMEOUT_MS, onRecordFailure }: RecordKeeping,
): Promise<boolean | null> {
  if (onRecord === undefined || request.keeping === null) return null;
  const kept = (async () => onRecord(record, request))().then(
    () => true,
    (error: Error) => {
      onRecordFailure?.(error, record);
      return false;
    },
  );
  return (await within(kept, recordTimeoutMs)) === true;
}
