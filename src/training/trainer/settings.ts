// Settings of a run: what the configuration says, else the preset, else the algorithm (protocol, section 5).

import type { TrainingConfig } from '../../config/index.js';
import { ConfigError } from '../../errors.js';
import {
  type AlgorithmName,
  type AlgorithmSettings,
  algorithmOf,
  PRESETS,
  type TrainingPreset,
} from '../algorithms/index.js';
import { learningRate, type Schedule } from '../optimizers/index.js';
import { objectiveSettings } from './objective-settings.js';

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
  /** Of the rollouts of a step; where more fail the audit, training ends. */
  readonly maxRejectedShare: number;
  /** Steps between validations; 0: never. */
  readonly validateEvery: number;
  readonly rollout: {
    readonly actionBudget: number;
    readonly turnTokens: number;
    readonly observationTokens: number;
    readonly passageTokens: number | null;
  };
}

/** Sequences of a supervised step: more updates from little data than the presets' rollout batches would give. */
const SUPERVISED_BATCH = 8;

/**
 * @param sizes  of rollouts and sequences where the configuration says none; those of the preset unless given
 * @throws {ConfigError} settings that contradict each other, or that the algorithm has no use for
 */
export function runSettings(
  config: TrainingConfig,
  algorithm: AlgorithmName,
  sizes: TrainingPreset['rollout'] = PRESETS[config.preset].rollout,
): RunSettings {
  const preset: TrainingPreset = PRESETS[config.preset];
  const { optimizer } = preset;
  const { supervised, usesCritic } = algorithmOf(algorithm);
  const batchSequences = config.batchSequences ?? (supervised ? SUPERVISED_BATCH : preset.batchSequences);
  const warmup = config.warmupShare === null ? optimizer.warmup : { share: config.warmupShare };
  const shape = config.schedule ?? optimizer.schedule;
  const trained = config.trained ?? (preset.trains === 'lora' ? 'lora' : 'whole');
  const maxSequenceTokens = config.maxSequenceTokens ?? sizes.sequenceTokens;
  const rollout = rolloutSizes(config, sizes);
  const longest = longestResponse(rollout, maxSequenceTokens);
  const objective = objectiveSettings(config, algorithm, preset, longest);
  if (supervised && config.validateEvery !== null && config.validateEvery > 0)
    throw new ConfigError(`training.validateEvery ${config.validateEvery}: ${algorithm} rolls nothing out`);
  return {
    algorithm,
    objective,
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
    weightDecay: config.weightDecay ?? WEIGHT_DECAY[trained],
    maxGradientNorm: config.maxGradientNorm ?? optimizer.maxGradientNorm,
    steps: config.steps ?? (supervised || config.epochs !== null ? null : preset.steps),
    epochs: config.epochs ?? (supervised ? 1 : (preset.epochs ?? 1)),
    batchSequences,
    miniBatchSequences:
      objective.policyLoss === 'reinforce'
        ? oneUpdate(config, algorithm, batchSequences)
        : Math.min(config.miniBatchSequences ?? preset.miniBatchSequences, batchSequences),
    batchEpochs: config.batchEpochs,
    dynamicSampling: algorithm === 'dapo',
    groupSize: supervised ? 1 : groupSizeOf(config, preset, batchSequences),
    klTarget: config.klTarget,
    klHorizon: config.klHorizon,
    microBatchTokens: config.microBatchTokens,
    lanes: trained === 'whole' ? 1 : config.lanes,
    maxSequenceTokens,
    checkpointEvery: config.checkpointEvery ?? preset.checkpointEvery,
    keepCheckpoints: config.keepCheckpoints,
    maxRejectedShare: config.maxRejectedShare,
    validateEvery: supervised ? 0 : (config.validateEvery ?? preset.validateEvery),
    rollout,
  };
}

/** Of an adapter, where a preset trains whole weights and the configuration asks for an adapter. */
const DEFAULT_LORA = PRESETS['lora-small'].lora;

/** The protocol's (section 5): decay on an adapter would draw the policy back to its base. */
const WEIGHT_DECAY = { whole: 0.01, lora: 0 } as const;

/** A step holds whole groups. */
function groupSizeOf({ groupSize }: TrainingConfig, preset: TrainingPreset, batchSequences: number): number {
  if (groupSize === null) return Math.min(preset.samplesPerQuestion, batchSequences);
  if (groupSize > batchSequences)
    throw new ConfigError(
      `training.groupSize ${groupSize}: a step of batchSequences ${batchSequences} holds no whole group`,
    );
  return groupSize;
}

/** Sequences of the only update: without a ratio, a second one would take rollouts for its own that are not. */
function oneUpdate(
  { miniBatchSequences, batchEpochs }: TrainingConfig,
  algorithm: AlgorithmName,
  batchSequences: number,
): number {
  if (batchEpochs > 1)
    throw new ConfigError(`training.batchEpochs ${batchEpochs}: ${algorithm} has no ratio, expected 1`);
  if (miniBatchSequences !== null && miniBatchSequences < batchSequences)
    throw new ConfigError(
      `training.miniBatchSequences ${miniBatchSequences}: ${algorithm} has no ratio, so a step of ${batchSequences} sequences is one update; leave it out`,
    );
  return batchSequences;
}

function rolloutSizes(config: TrainingConfig, sizes: TrainingPreset['rollout']): RunSettings['rollout'] {
  return {
    actionBudget: config.actionBudget ?? sizes.actionBudget,
    turnTokens: config.turnTokens ?? sizes.turnTokens,
    observationTokens: config.observationTokens ?? sizes.observationTokens,
    passageTokens: config.passageTokens ?? sizes.passageTokens,
  };
}

/** Of a rollout that uses its whole budget. */
function longestResponse({ actionBudget, turnTokens }: RunSettings['rollout'], sequence: number): number {
  return Math.min((actionBudget + 1) * turnTokens, sequence);
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
