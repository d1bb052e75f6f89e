export { createApiKey } from './api-key.js';
export {
  type Label,
  type LabelSource,
  labelOf,
  labelOfGolds,
  NO_LABEL,
  saysNothing,
  sourceOf,
} from './label.js';
export type { Auditor } from './messages.js';
export { openTrajectoryStore, type StoreOptions } from './open-store.js';
export type { TrajectoryStore } from './store.js';
export {
  type DeletionReport,
  type FeedbackEntry,
  type FeedbackInput,
  type FeedbackOutcome,
  type KeyRecord,
  NO_NOTES,
  type RecordFilter,
  type RecordNotes,
  SCOPES,
  type Scope,
  type StoredHead,
  type StoredMessage,
  type StoredTrajectory,
} from './types.js';
