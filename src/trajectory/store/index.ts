export { createApiKey, type NewKey } from './api-key.js';
export {
  type GoldLabel,
  type Label,
  type LabelSource,
  labelOf,
  labelOfGolds,
  NO_LABEL,
  type RewardLabel,
  saysNothing,
  sourceOf,
} from './label.js';
export type { Auditor, AuditSummary } from './messages.js';
export { openTrajectoryStore, type StoreOptions } from './open-store.js';
export type { Retention } from './queries/deletion.js';
export type { GradeInput } from './queries/records.js';
export type { TrajectoryStore } from './store.js';
export type { AuditState } from './tables.js';
export * from './types.js';
export type { QueueHealth } from './write-queue.js';
