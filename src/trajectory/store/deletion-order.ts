// A deletion as it is ordered, and where its report waits until it has been heard.

import { randomUUID } from 'node:crypto';
import type { RecordFilter } from './types.js';

export interface DeletionOrder {
  /** Document that holds the report: what is sent again, since its reply was lost, gets the report of the first time. */
  readonly report: string;
  readonly filter: RecordFilter;
  /** Records stay: what the filter's key said goes alone. */
  readonly feedbackOnly: boolean;
}

/** What names of such documents begin with. */
export const REPORTS = 'deletion:';

export const deletionOrder = (filter: RecordFilter, feedbackOnly = false): DeletionOrder => ({
  report: `${REPORTS}${randomUUID()}`,
  filter,
  feedbackOnly,
});
