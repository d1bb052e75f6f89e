export { type BestOfNOptions, type BestOfNSummary, sampleBest } from './best-of-n.js';
export { runIdentity } from './identity.js';
export {
  type LockStepOptions,
  LockStepRollouts,
  type RolloutJob,
  type RolloutParts,
  slotRunners,
} from './lock-step-rollouts.js';
export type { TrainingOutcome } from './outcome.js';
export { type Regraded, type RegradeOptions, regrade } from './regrade.js';
export { type SampledBatch, type ScoredRollout, sampleBatch } from './rollout-batch.js';
export { type OpenRunOptions, openRun, type RunFolder, type RunIdentity } from './run-folder.js';
export { type RlEvents, type RlParts, rlSteps, trainRl } from './train-rl.js';
export {
  supervisedSteps,
  type TrainingEvents,
  trainSft,
} from './train-sft.js';
