// Named runs: those of the papers, and the default for one CPU. Data only; the trainer reads it.
//
// Search-R1, appendix B: policy 1e-6, value 1e-5, warm-up shares 0.285 and 0.015, batch 512, mini-batch 256, micro-batch 64,
// 500 steps, beta 0.001, epsilon 0.2. SSRL: batch 256, 62 warm-up steps, 5 epochs, answers up to 4,096 tokens, the best
// checkpoint on validation. `lora-small` is ours. Micro-batches are ours in all of them: they go by tokens, and how a batch is
// split does not change its gradient. Weight decay goes by what is trained, see `runSettings`.

import type { AlgorithmName } from './registry.js';
import type { AlgorithmSettings } from './settings.js';

export interface TrainingPreset {
  readonly algorithm: AlgorithmName;
  /** On top of the algorithm's own. */
  readonly settings: Partial<AlgorithmSettings>;
  readonly trains: 'all-weights' | 'lora';
  readonly lora: { readonly rank: number; readonly alpha: number; readonly targets: 'all-linear' } | null;
  readonly optimizer: {
    readonly learningRate: number;
    readonly valueLearningRate: number;
    /** Of supervised training. */
    readonly sftLearningRate: number;
    readonly maxGradientNorm: number;
    /** Share of all steps, or a number of steps. */
    readonly warmup: { readonly share: number } | { readonly steps: number };
    readonly valueWarmup: { readonly share: number };
    readonly schedule: 'constant' | 'cosine';
  };
  /** Rollouts of one step, and of one optimizer update. */
  readonly batchSequences: number;
  readonly miniBatchSequences: number;
  readonly samplesPerQuestion: number;
  /** null: as long as the caller says. */
  readonly steps: number | null;
  /** Passes over the questions; null: counted in steps. */
  readonly epochs: number | null;
  readonly checkpointEvery: number;
  /** Steps between validations, the best of which the run gives; 0: it gives the last one. */
  readonly validateEvery: number;
  readonly rollout: {
    readonly actionBudget: number;
    readonly turnTokens: number;
    readonly observationTokens: number;
    /** null: cut only at the observation's end. */
    readonly passageTokens: number | null;
    readonly sequenceTokens: number;
  };
}

const PAPER_PPO: TrainingPreset = {
  algorithm: 'ppo',
  settings: { klBeta: 0.001, clipEpsilonLow: 0.2, clipEpsilonHigh: 0.2, gamma: 1, gaeLambda: 1 },
  trains: 'all-weights',
  lora: null,
  optimizer: {
    learningRate: 1e-6,
    valueLearningRate: 1e-5,
    sftLearningRate: 1e-5,
    maxGradientNorm: 1,
    warmup: { share: 0.285 },
    valueWarmup: { share: 0.015 },
    schedule: 'constant',
  },
  batchSequences: 512,
  miniBatchSequences: 256,
  samplesPerQuestion: 1,
  steps: 500,
  epochs: null,
  checkpointEvery: 100,
  validateEvery: 0,
  rollout: {
    actionBudget: 4,
    turnTokens: 500,
    observationTokens: 500,
    passageTokens: null,
    sequenceTokens: 4096,
  },
};

const PAPER_GRPO: TrainingPreset = { ...PAPER_PPO, algorithm: 'grpo', samplesPerQuestion: 5 };

export const PRESETS = {
  'paper-ppo': PAPER_PPO,
  'paper-grpo': PAPER_GRPO,
  'paper-ssrl': {
    ...PAPER_GRPO,
    optimizer: { ...PAPER_GRPO.optimizer, warmup: { steps: 62 } },
    batchSequences: 256,
    miniBatchSequences: 256,
    steps: null,
    epochs: 5,
    validateEvery: 100,
    rollout: { ...PAPER_GRPO.rollout, turnTokens: 4096 },
  },
  'lora-small': {
    ...PAPER_GRPO,
    trains: 'lora',
    lora: { rank: 16, alpha: 32, targets: 'all-linear' },
    optimizer: {
      ...PAPER_GRPO.optimizer,
      learningRate: 5e-5,
      valueLearningRate: 5e-5,
      sftLearningRate: 3e-4,
      warmup: { share: 0.05 },
      valueWarmup: { share: 0.05 },
    },
    batchSequences: 32,
    miniBatchSequences: 32,
    samplesPerQuestion: 4,
    steps: null,
    checkpointEvery: 10,
    rollout: {
      actionBudget: 2,
      turnTokens: 128,
      observationTokens: 256,
      passageTokens: 80,
      sequenceTokens: 2048,
    },
  },
} as const satisfies Readonly<Record<string, TrainingPreset>>;
