// training/model/: a decoder as the trainer sees it.

export { openTrainingModel } from './open-training-model.js';
export type { TrainableWeights } from './parameters.js';
