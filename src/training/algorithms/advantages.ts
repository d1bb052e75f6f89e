// From rewards to an advantage for each sampled token: dispatch over the estimators and what all of them share.

import type { MetricSums, RolloutData } from './objective.js';
import type { AlgorithmSettings } from './settings.js';

export interface AdvantageResult {
  /** For each rollout [T], 0 where lossMask is 0. */
  readonly advantages: readonly Float64Array[];
  /** Targets of the critic, for each rollout [T]; null without one. */
  readonly returns: readonly Float64Array[] | null;
  /** False: carries no signal (no sampled token; a group of equal rewards) and belongs in no optimizer batch. */
  readonly keep: readonly boolean[];
  readonly metrics: MetricSums;
}

export declare function computeAdvantages(
  rollouts: readonly RolloutData[],
  settings: AlgorithmSettings,
): AdvantageResult;
