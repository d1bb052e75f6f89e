export { runIdentity } from './identity.js';
export { type OpenRunOptions, openRun, type RunFolder, type RunIdentity } from './run-folder.js';
export {
  supervisedSteps,
  type TrainingEvents,
  type TrainingOutcome,
  trainSft,
} from './train-sft.js';
