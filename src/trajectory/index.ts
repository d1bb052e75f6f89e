// trajectory/: the record of a rollout, the audit of its invariants, and the store that keeps records and feedback.
// Ids, origins, masks and log-probabilities in aligned arrays.
// Never decodes and encodes again what was sampled.

export {
  extractAnswer,
  leadingSpaceLength,
  normaliseAnswer,
  trailingSpaceLength,
  trimSpace,
} from './answer.js';
export { type AuditFault, type AuditRule, audit } from './audit.js';
export {
  createTrajectoryBuilder,
  type SampledSpan,
  type TrajectoryBuilder,
  type TrajectoryBuilderOptions,
  type TrajectoryFields,
} from './builder.js';
export {
  type ExportLine,
  exportLine,
  exportText,
  type ImportedTrajectory,
  importLine,
} from './export/line.js';
export { insideInformation } from './information.js';
export {
  type ObservationRecord,
  type SearchRecord,
  type TokenOrigin,
  type TrajectoryRecord,
  type TrajectoryStop,
  trajectoryRecordSchema,
  type VersionSpan,
} from './record.js';
export {
  createSampledText,
  PROTOCOL_TAGS,
  type ProtocolTag,
  type SampledText,
  sampledText,
} from './sampled-text.js';
export * from './store/index.js';
