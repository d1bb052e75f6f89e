// training/: losses and their optimisation over the model's graphs, in the pool; checkpoints of what was trained.
// Trajectories with rewards in; better adapters, checkpoints and figures out.
// Never samples, never searches, never decides what is published.

export {
  AdaptiveKl,
  ALGORITHMS,
  type AlgorithmName,
  bestOfN,
  policyDistance,
  type RunningBaselineState,
  RunningBaselines,
  selectGroups,
} from './algorithms/index.js';
export { type Checkpoint, checkpointFolder, listCheckpoints, pruneCheckpoints } from './checkpoint/store.js';
export { holdsWholeWeights } from './checkpoint/trained-files.js';
export { type Example, type ExampleFile, readExamples } from './data/examples.js';
export { exportAdapter } from './export/export-adapter.js';
export { exportGguf, exportSafetensors } from './export/export-model.js';
export { openFigures, type RunFigures } from './metrics/figures.js';
export { type MetricsRow, readMetrics } from './metrics/metrics-file.js';
export { knownFigures, PLOTTED_FIGURES, type PlottedRun, plotRuns } from './metrics/plot.js';
export type { TrainingSequence } from './step/sequences.js';
export { type DecoderSpec, loraShape, openDecoder, openDecoderWeights } from './trainer/decoder.js';
export type { Carried, CommitReport, StepReport, StepWork } from './trainer/messages.js';
export { referenceDigest } from './trainer/reference.js';
export { learningRates, type RunSettings, runSettings } from './trainer/settings.js';
export type { Trainable, TrainedPart } from './trainer/trainable.js';
export { openTrainer, type Trainer } from './trainer/trainer.js';
export { trainerTask } from './trainer/trainer-task.js';
export type { TrainingLane } from './training-model.js';
