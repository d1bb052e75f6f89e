// training/algorithms: advantages and losses as pure functions over masked arrays, in float64.
// Rewards and log-probabilities in; loss, its gradients by score, and metrics out.
// Never runs a model, never updates a parameter.

export { AdaptiveKl, type AdaptiveKlSettings } from './adaptive-kl.js';
export {
  type RunningBaselineState,
  RunningBaselines,
} from './advantages/running-baseline.js';
export { type AdvantageResult, computeAdvantages } from './advantages.js';
export type { Aggregation } from './aggregation.js';
export { stopsEarly } from './early-stop.js';
export type { KlEstimator } from './losses/kl.js';
export { addMetrics, NO_METRICS, summariseMetrics } from './metrics.js';
export {
  type CurrentScores,
  type Evaluation,
  type MetricSums,
  type Objective,
  type ObjectiveSequence,
  type RolloutData,
  scoreGradients,
} from './objective.js';
export { createPolicyObjective } from './policy-objective.js';
export { PRESETS, type PresetName, type TrainingPreset } from './presets.js';
export {
  ALGORITHMS,
  type Algorithm,
  type AlgorithmName,
  algorithmNames,
  algorithmOf,
  algorithmSettings,
} from './registry.js';
export { type DynamicSelection, selectGroups } from './selection/dynamic-sampling.js';
export { type PolicyDistance, policyDistance } from './selection/policy-distance.js';
export { bestOfN, type Candidate } from './selection/rejection-sampling.js';
export {
  type AdvantageName,
  type AlgorithmSettings,
  DEFAULT_SETTINGS,
  type PolicyLossName,
} from './settings.js';
export { createValueObjective } from './value-objective.js';
