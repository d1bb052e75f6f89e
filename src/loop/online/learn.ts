// One step of learning: whether there is enough for it, and the update. Commits nothing: that is the loop's.

import {
  checkpointFolder,
  derivedSeed,
  learningRates,
  type RunningBaselines,
  type StepReport,
  type StepWork,
  type Trainer,
} from '../../training/index.js';
import { trainingSequence } from '../offline/rollout-batch.js';
import type { Batch, Plan } from './batch.js';
import { checkpointsOf, type LoopHouse } from './house.js';
import type { LabelIndex } from './labels.js';
import { loggedAnswers, usablePairs } from './logged-answers.js';

/** Questions, answers and pairs that a step could be made of. */
function countOf(house: LoopHouse, labels: LabelIndex, wasUsed: (id: string) => boolean): number {
  const pairs = usablePairs(house, labels, wasUsed).length;
  return house.settings.mode === 'replay'
    ? labels.toReplay().size + pairs
    : loggedAnswers(house, labels, wasUsed).usable.length + pairs;
}

/** What the loop would need for a step, in words; null: nothing is missing. */
export function missingForStep(
  house: LoopHouse,
  labels: LabelIndex,
  wasUsed: (id: string) => boolean,
): string | null {
  const { mode, minQuestions } = house.settings;
  const count = countOf(house, labels, wasUsed);
  return count >= minQuestions
    ? null
    : `${count} labelled ${mode === 'replay' ? 'questions' : 'explored answers'} may be trained on; a step needs ${minQuestions}`;
}

/** Whether a step that an admin asks for has anything to learn from. */
export const hasAnything = (
  house: LoopHouse,
  labels: LabelIndex,
  wasUsed: (id: string) => boolean,
): boolean => countOf(house, labels, wasUsed) > 0;

/** Steps over which a learning rate that changes would change. */
const HORIZON = 1000;

/** Updates the trainer's values. @throws {NonFiniteError} the step is rejected, nothing has changed */
export async function trainOn(
  house: LoopHouse,
  trainer: Trainer,
  batch: Batch,
  plan: Plan,
  baselines: RunningBaselines,
  signal: AbortSignal,
): Promise<StepReport> {
  const { run } = house;
  const { version } = trainer.committed;
  const constant = { ...run, policySchedule: { ...run.policySchedule, shape: 'constant' as const } };
  const rates = learningRates(constant, trainer.step + 1, HORIZON);
  const { weightDecay, maxGradientNorm } = run;
  const work: StepWork = {
    step: trainer.step + 1,
    version,
    algorithm: run.objective,
    supervised: false,
    sequences: batch.rollouts.map((item) => trainingSequence(item, version, baselines)),
    batchEpochs: run.batchEpochs,
    miniBatchSequences: run.miniBatchSequences,
    policy: { learningRate: rates.policy, weightDecay, maxGradientNorm },
    value: { learningRate: rates.value, weightDecay, maxGradientNorm },
    microBatchTokens: run.microBatchTokens,
    seed: derivedSeed(plan.seed, 'step', plan.step),
    // The policy that the loop began with; always, because gate and guard watch the distance.
    reference: checkpointFolder(checkpointsOf(house.folder), 0),
    versions: {},
  };
  const stop = house.priority.watch((mayWork) => Atomics.store(house.pause, 0, mayWork ? 0 : 1));
  // A step that shall end must not stand still.
  const wake = (): void => void Atomics.store(house.pause, 0, 0);
  signal.addEventListener('abort', wake);
  try {
    await house.priority.idle(signal);
    return await trainer.run(work, { signal });
  } finally {
    stop();
    signal.removeEventListener('abort', wake);
    wake();
  }
}
