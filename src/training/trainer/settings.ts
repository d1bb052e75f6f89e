// Settings of a run: what the configuration says, else the preset, else the algorithm (protocol, section 5).

import type { TrainingConfig } from '../../config/index.js';
import {
  type AlgorithmName,
  type AlgorithmSettings,
  algorithmOf,
  algorithmSettings,
  PRESETS,
  type TrainingPreset,
} from '../algorithms/index.js';
import { learningRate, type Schedule } from '../optimizers/index.js';

export interface RunSettings {
  readonly algorithm: AlgorithmName;
  readonly objective: AlgorithmSettings;
  readonly supervised: boolean;
  readonly usesCritic: boolean;
  readonly seed: number;
  readonly trained: 'lora' | 'whole';
  readonly rank: number;
  readonly alpha: number;
  readonly policySchedule: Schedule;
  readonly valueSchedule: Schedule;
  readonly weightDecay: number;
  readonly maxGradientNorm: number;
  /** null: the epochs over the data. */
  readonly steps: number | null;
  readonly epochs: number;
  /** Sequences of a step. */
  readonly batchSequences: number;
  readonly miniBatchSequences: number;
  readonly batchEpochs: number;
  /** Rollouts of a question in a step. */
  readonly groupSize: number;
  /** Groups of equal outcomes are replaced by further questions. */
  readonly dynamicSampling: boolean;
  /** Mean KL a token that the KL's weight follows; null: the weight is fixed. */
  readonly klTarget: number | null;
  readonly klHorizon: number;
  readonly microBatchTokens: number;
  /** Micro-batches side by side; sums of gradients depend on it in their last digits. */
  readonly lanes: number;
  readonly maxSequenceTokens: number;
  readonly checkpointEvery: number;
  readonly keepCheckpoints: number;
  readonly rollout: {
    readonly actionBudget: number;
    readonly turnTokens: number;
    readonly observationTokens: number;
    readonly passageTokens: number | null;
  };
}

/** Sequences of a supervised step: more updates from little data than the presets' rollout batches would give. */
const SUPERVISED_BATCH = 8;

/** Settings of the algorithm that may be given. */
const OBJECTIVE_KEYS = [
  'aggregation',
  'klBeta',
  'clipEpsilonLow',
  'clipEpsilonHigh',
  'gamma',
  'gaeLambda',
  'targetKl',
] as const;

export function runSettings(config: TrainingConfig, algorithm: AlgorithmName): RunSettings {
  const preset: TrainingPreset = PRESETS[config.preset];
  const { optimizer, rollout } = preset;
  const { supervised, usesCritic } = algorithmOf(algorithm);
  const batchSequences = config.batchSequences ?? (supervised ? SUPERVISED_BATCH : preset.batchSequences);
  const warmup = config.warmupShare === null ? optimizer.warmup : { share: config.warmupShare };
  const shape = config.schedule ?? optimizer.schedule;
  const trained = config.trained ?? (preset.trains === 'lora' ? 'lora' : 'whole');
  return {
    algorithm,
    objective: objectiveOf(config, algorithm, preset),
    supervised,
    usesCritic,
    seed: config.seed,
    trained,
    rank: config.rank ?? preset.lora?.rank ?? DEFAULT_LORA.rank,
    alpha: config.alpha ?? preset.lora?.alpha ?? DEFAULT_LORA.alpha,
    policySchedule: {
      peak: config.learningRate ?? (supervised ? optimizer.sftLearningRate : optimizer.learningRate),
      warmup,
      shape,
    },
    valueSchedule: {
      peak: config.valueLearningRate ?? optimizer.valueLearningRate,
      warmup: config.valueWarmupShare === null ? optimizer.valueWarmup : { share: config.valueWarmupShare },
      shape,
    },
    weightDecay: config.weightDecay ?? optimizer.weightDecay,
    maxGradientNorm: config.maxGradientNorm ?? optimizer.maxGradientNorm,
    steps: config.steps ?? (supervised || config.epochs !== null ? null : preset.steps),
    epochs: config.epochs ?? (supervised ? 1 : (preset.epochs ?? 1)),
    batchSequences,
    miniBatchSequences: Math.min(config.miniBatchSequences ?? preset.miniBatchSequences, batchSequences),
    batchEpochs: config.batchEpochs,
    dynamicSampling: algorithm === 'dapo',
    groupSize: supervised ? 1 : (config.groupSize ?? preset.samplesPerQuestion),
    klTarget: config.klTarget,
    klHorizon: config.klHorizon,
    microBatchTokens: config.microBatchTokens,
    lanes: trained === 'whole' ? 1 : config.lanes,
    maxSequenceTokens: config.maxSequenceTokens ?? rollout.sequenceTokens,
    checkpointEvery: config.checkpointEvery ?? preset.checkpointEvery,
    keepCheckpoints: config.keepCheckpoints,
    rollout: {
      actionBudget: config.actionBudget ?? rollout.actionBudget,
      turnTokens: config.turnTokens ?? rollout.turnTokens,
      observationTokens: config.observationTokens ?? rollout.observationTokens,
      passageTokens: config.passageTokens ?? rollout.passageTokens,
    },
  };
}

/** Of an adapter, where a preset trains whole weights and the configuration asks for an adapter. */
const DEFAULT_LORA = PRESETS['lora-small'].lora;

function objectiveOf(
  config: TrainingConfig,
  algorithm: AlgorithmName,
  preset: TrainingPreset,
): AlgorithmSettings {
  const given = Object.fromEntries(
    OBJECTIVE_KEYS.filter((key) => config[key] !== null).map((key) => [key, config[key]]),
  );
  // Of a rollout that uses its whole budget.
  const longest = longestResponse(config, preset);
  return algorithmSettings(algorithm, {
    tokenSumNorm: longest,
    overlong: algorithm === 'dapo' ? { maxTokens: longest, cacheTokens: Math.ceil(longest / 5) } : null,
    // A preset's values were made for its own algorithm; beta is the same in all of them.
    ...(preset.algorithm === algorithm ? preset.settings : {}),
    entropyBonus: config.entropyBonus,
    focalGamma: config.focalGamma,
    maxStaleness: config.maxStaleness,
    ...given,
  });
}

function longestResponse(config: TrainingConfig, { rollout }: TrainingPreset): number {
  const turns = (config.actionBudget ?? rollout.actionBudget) + 1;
  return turns * (config.turnTokens ?? rollout.turnTokens);
}

/** Learning rates of a step, counted from 1. */
export function learningRates(
  settings: RunSettings,
  step: number,
  steps: number,
): { readonly policy: number; readonly value: number } {
  return {
    policy: learningRate(settings.policySchedule, step - 1, steps),
    value: learningRate(settings.valueSchedule, step - 1, steps),
  };
}
