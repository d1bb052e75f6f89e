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
export { audit } from './audit.js';
export { createTrajectoryBuilder, type TrajectoryBuilder } from './builder.js';
export { exportLine, exportText, importLine } from './export/line.js';
export {
  type ObservationRecord,
  type TokenOrigin,
  type TrajectoryRecord,
  type TrajectoryStop,
  trajectoryRecordSchema,
} from './record.js';
export { createSampledText, PROTOCOL_TAGS, type ProtocolTag, sampledText } from './sampled-text.js';
export * from './store/index.js';
