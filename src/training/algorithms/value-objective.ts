// The critic's objective: clipped squared error of values against returns.

import type { Objective, ObjectiveSequence } from './objective.js';
import type { AlgorithmSettings } from './settings.js';

export declare function createValueObjective(
  sequences: readonly ObjectiveSequence[],
  settings: AlgorithmSettings,
): Objective;
