// training/: losses and their optimisation over the model's graphs, in the pool; checkpoints of what was trained.
// Trajectories with rewards in; better adapters, checkpoints and figures out.
// Never samples, never searches, never decides what is published.

export * from './algorithms/index.js';
export { MICRO_BATCH_TOKENS, packMicroBatches } from './batch/packing.js';
export type { CheckpointManifest } from './checkpoint/manifest.js';
export {
  type Checkpoint,
  type CheckpointList,
  checkpointFolder,
  listCheckpoints,
  pruneCheckpoints,
} from './checkpoint/store.js';
export {
  adapterConfigJson,
  holdsWholeWeights,
  type LoraShape,
  readTrained,
  type TrainedForm,
  writeTrained,
} from './checkpoint/trained-files.js';
export { type Example, type ExampleFile, readExamples } from './data/examples.js';
export { exportAdapter } from './export/export-adapter.js';
export { type ExportOptions, exportGguf, exportSafetensors, type GgufType } from './export/export-model.js';
export { openFigures, type RunFigures } from './metrics/figures.js';
export { type MetricsRow, readMetrics } from './metrics/metrics-file.js';
export { knownFigures, PLOTTED_FIGURES, type PlottedRun, plotRuns } from './metrics/plot.js';
export {
  type HeadSettings,
  type LoraSettings,
  openTrainingModel,
  type TrainableWeights,
  type TrainingModelOptions,
} from './model/index.js';
export { itemsBetween, randomNumbers, shuffledOrder } from './random.js';
export type { RolloutFacts, TrainingSequence } from './step/sequences.js';
export { type DecoderSpec, loraShape, openDecoder, openDecoderWeights } from './trainer/decoder.js';
export type { Carried, CommitReport, StepReport, StepWork } from './trainer/messages.js';
export { referenceDigest } from './trainer/reference.js';
export { learningRates, type RunSettings, runSettings } from './trainer/settings.js';
export type { OpenTrainable, Trainable, TrainedPart } from './trainer/trainable.js';
export { openTrainer, type StepOptions, type Trainer, type TrainerOptions } from './trainer/trainer.js';
export { trainerTask } from './trainer/trainer-task.js';
export type * from './training-model.js';
