// The learning rate of a step: a linear warm-up, then constant or half a cosine down to 0.
//
// Search-R1 warms up over a share of all steps and then stays constant; SSRL's warm-up is a number of steps.

import { InvalidInputError } from '../../errors.js';

export interface Schedule {
  /** Of the plateau. */
  readonly peak: number;
  /** A share of `totalSteps`, rounded down as in Search-R1's release, or a number of steps. */
  readonly warmup: { readonly share: number } | { readonly steps: number };
  readonly shape: 'constant' | 'cosine';
}

/**
 * @param step        counted from 0
 * @param totalSteps  of the whole run; beyond it a cosine stays at 0
 * @returns           never 0 during the warm-up: step 0 already has a part of the peak, so that no step is wasted
 * @throws {InvalidInputError} a share outside [0, 1], a negative number of steps, or no steps at all
 */
export function learningRate(schedule: Schedule, step: number, totalSteps: number): number {
  const warmup = warmupSteps(schedule, totalSteps);
  if (step < warmup) return (schedule.peak * (step + 1)) / warmup;
  if (schedule.shape === 'constant') return schedule.peak;
  const progress = Math.min((step - warmup) / Math.max(totalSteps - warmup, 1), 1);
  return (schedule.peak * (1 + Math.cos(Math.PI * progress))) / 2;
}

function warmupSteps({ warmup }: Schedule, totalSteps: number): number {
  if (!(totalSteps > 0))
    throw new InvalidInputError(`totalSteps must be positive, got ${totalSteps}`, 'totalSteps');
  if ('steps' in warmup) {
    if (Number.isInteger(warmup.steps) && warmup.steps >= 0) return warmup.steps;
    throw new InvalidInputError(
      `warmup.steps: expected a whole number from 0, got ${warmup.steps}`,
      'warmup',
    );
  }
  if (warmup.share >= 0 && warmup.share <= 1) return Math.floor(warmup.share * totalSteps);
  throw new InvalidInputError(`warmup.share: expected 0 to 1, got ${warmup.share}`, 'warmup');
}
