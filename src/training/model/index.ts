// training/model/: a decoder as the trainer sees it.

export {
  type HeadSettings,
  openTrainingModel,
  type TrainingModelOptions,
} from './open-training-model.js';
export type { LoraSettings, TrainableWeights } from './parameters.js';
