// The policy's objective: the token loss named in the settings plus KL, entropy, llds and echo.

import type { Objective, ObjectiveSequence } from './objective.js';
import type { AlgorithmSettings } from './settings.js';

/** @param random  uniform in [0, 1), from the trainer's stored generator; needed by clip-cov only */
export declare function createPolicyObjective(
  sequences: readonly ObjectiveSequence[],
  settings: AlgorithmSettings,
  random?: () => number,
): Objective;
