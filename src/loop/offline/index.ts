export { sampleBest } from './best-of-n.js';
export { runIdentity } from './identity.js';
export { LockStepRollouts, type RolloutParts, slotRunners } from './lock-step-rollouts.js';
export type { TrainingOutcome } from './outcome.js';
export { type Regraded, regrade } from './regrade.js';
export { openRun, type RunFolder } from './run-folder.js';
export { type RlEvents, type RlParts, trainRl } from './train-rl.js';
export { trainSft } from './train-sft.js';
