// training/algorithms: advantages and losses as pure functions over masked arrays, in float64.
// Rewards and log-probabilities in; loss, its gradients by score, and metrics out.
// Never runs a model, never updates a parameter.

export { AdaptiveKl } from './adaptive-kl.js';
export {
  type RunningBaselineState,
  RunningBaselines,
} from './advantages/running-baseline.js';
export { type AdvantageResult, computeAdvantages } from './advantages.js';
export { stopsEarly } from './early-stop.js';
export { joinObjectives } from './joined-objective.js';
export { klEstimate } from './losses/kl.js';
export { addMetrics, NO_METRICS, summariseMetrics } from './metrics.js';
export {
  type MetricSums,
  type Objective,
  type ObjectiveSequence,
  type RolloutData,
  scoreGradients,
} from './objective.js';
export { createPolicyObjective } from './policy-objective.js';
export { PRESETS, type TrainingPreset } from './presets.js';
export { ALGORITHMS, type AlgorithmName, algorithmOf, algorithmSettings } from './registry.js';
export { selectGroups } from './selection/dynamic-sampling.js';
export { policyDistance } from './selection/policy-distance.js';
export { bestOfN } from './selection/rejection-sampling.js';
export type { AlgorithmSettings } from './settings.js';
export { createValueObjective } from './value-objective.js';
