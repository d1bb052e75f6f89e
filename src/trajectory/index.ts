// trajectory/: the record of a rollout and the audit of its invariants.
// Ids, origins, masks and log-probabilities in aligned arrays.
// Never decodes and encodes again what was sampled.

export type * from './record.js';
