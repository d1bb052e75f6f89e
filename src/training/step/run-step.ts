// One step of a run: given trajectories or rollouts in, updated values and figures out.

import { createPolicyObjective, summariseMetrics } from '../algorithms/index.js';
import type { StepWork } from '../trainer/messages.js';
import type { StepControl } from './accumulate.js';
import { updateModel } from './guarded-update.js';
import { rolloutStep } from './rollout-step.js';
import { sampledTokens, supervisedSequence } from './sequences.js';
import type { StepOutcome, StepPart, StepParts } from './step-parts.js';

/**
 * Changes parameters and moments in place.
 * @throws {NonFiniteError} a number is not finite; says which. State may be half-changed: the caller restores it.
 * @throws {CancelledError} the control said so; likewise
 */
export function runStep(parts: StepParts, work: StepWork, control: StepControl): Promise<StepOutcome> {
  return work.supervised ? supervisedStep(parts.policy, work, control) : rolloutStep(parts, work, control);
}

/** Cross-entropy on the sampled tokens of given trajectories. */
async function supervisedStep(policy: StepPart, work: StepWork, control: StepControl): Promise<StepOutcome> {
  const rows = work.sequences.map(({ tokenIds }) => Array.from(tokenIds));
  const objective = createPolicyObjective(work.sequences.map(supervisedSequence), work.algorithm);
  const { loss, metrics, tokens, gradientNorm } = await updateModel(
    policy.model,
    policy.optimizer,
    rows,
    objective,
    work.policy,
    control,
  );
  const lossTokens = work.sequences.reduce((sum, sequence) => sum + sampledTokens(sequence).length, 0);
  return {
    metrics: {
      ...summariseMetrics(metrics),
      loss,
      gradientNorm,
      learningRate: work.policy.learningRate,
      lossTokens,
    },
    tokens,
  };
}
