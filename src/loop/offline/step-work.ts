// A step of reinforcement learning as the trainer takes it: the same for a run and for the loop.

import {
  learningRates,
  type RunningBaselines,
  type RunSettings,
  type StepWork,
  type Trainer,
} from '../../training/index.js';
import type { TrajectoryRecord } from '../../trajectory/index.js';
import { givenSequence, type ScoredRollout, trainingSequence } from './rollout-batch.js';
import { type Sampler, samplerOf, type TrainerVersions } from './sampling-version.js';

export interface Demonstrations {
  readonly records: readonly TrajectoryRecord[];
  /** Of their cross-entropy, beside the loss of rollouts. */
  readonly weight: number;
}

export interface StepParts {
  readonly settings: RunSettings;
  /** The step begins with its committed policy. */
  readonly trainer: Pick<Trainer, 'step' | 'committed'>;
  /** Of the trainer, the present one among them. */
  readonly versions: TrainerVersions;
  readonly batch: readonly ScoredRollout[];
  /** Shown beside the rollouts. */
  readonly demonstrations?: Demonstrations;
  readonly baselines: RunningBaselines;
  /** Weight of the KL to the reference. */
  readonly klBeta: number;
  /** Steps over which a learning rate that changes would change. */
  readonly steps: number;
  /** Of what is drawn in the step. */
  readonly seed: number;
  /** Folder of the reference policy, or `base`; null: no KL is computed. */
  readonly reference: string | null;
}

const NONE: Demonstrations = { records: [], weight: 0 };

/**
 * The trainer's next step. Each rollout is weighed against the version that its record names; a logged answer against the
 * present one, its ratio to the version that sampled is in the importance weights.
 */
export function stepWork(parts: StepParts): StepWork {
  const { settings, trainer, versions, batch, baselines, klBeta, steps, seed, reference } = parts;
  const { demonstrations = NONE } = parts;
  const { weightDecay, maxGradientNorm } = settings;
  const { version } = trainer.committed;
  const step = trainer.step + 1;
  const rates = learningRates(settings, step, steps);
  const sampler = ({ record, isLogged }: ScoredRollout): Sampler =>
    isLogged === true ? { version, staleness: 0 } : samplerOf(record, versions);
  return {
    step,
    version,
    algorithm: { ...settings.objective, klBeta },
    supervised: false,
    sequences: [
      ...batch.map((item) => trainingSequence(item, sampler(item), baselines)),
      ...demonstrations.records.map(givenSequence),
    ],
    demonstrationWeight: demonstrations.weight,
    batchEpochs: settings.batchEpochs,
    miniBatchSequences: settings.miniBatchSequences,
    policy: { learningRate: rates.policy, weightDecay, maxGradientNorm },
    value: { learningRate: rates.value, weightDecay, maxGradientNorm },
    microBatchTokens: settings.microBatchTokens,
    seed,
    reference,
    versions: Object.fromEntries([...versions].map(([name, { folder }]) => [name, folder])),
  };
}
