// One optimizer update of a model: gradients of an objective, norm, clip, AdamW; refused where a number is not finite or a weight too large to serve.

import type { Objective } from '../algorithms/index.js';
import { type AdamW, checkValues, type UpdateRule } from '../optimizers/index.js';
import type { TrainingModel } from '../training-model.js';
import { type Accumulated, accumulateGradients, type StepControl, type TokenRows } from './accumulate.js';

export interface UpdateReport extends Accumulated {
  /** Before clipping. */
  readonly gradientNorm: number;
}

/**
 * @throws {NonFiniteError} a score, loss, gradient or updated value is not finite, or a value too large to serve; says which. Values may then be
 * half-updated: the caller puts the state before the step back.
 */
export async function updateModel(
  model: TrainingModel,
  optimizer: AdamW,
  rows: TokenRows,
  objective: Objective,
  settings: UpdateRule,
  control: StepControl,
): Promise<UpdateReport> {
  const accumulated = await accumulateGradients(model, rows, objective, control);
  control.throwIfCancelled();
  const { gradientNorm } = optimizer.update(settings);
  checkValues(model.parameters);
  return { ...accumulated, gradientNorm };
}
