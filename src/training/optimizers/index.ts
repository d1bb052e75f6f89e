// training/optimizers: AdamW on typed arrays, gradient norm and clip, learning-rate schedules.
// Parameters with gradients in; parameters moved in place.
// Never knows where a gradient came from.

export { AdamW, type UpdateRule } from './adamw.js';
export { checkValues } from './gradient-norm.js';
export { learningRate, type Schedule } from './schedule.js';
