// What the warm start of the tiny world is made by; see docs/learning.md.

import { GOOD_HABITS, type Habits, WARM_START_HABITS } from './teacher.js';

/** Supervised training on trajectories of a teacher with these habits. */
export interface TinyStage {
  readonly name: string;
  /**
   * `own`: the half to learn from. `others`: a world of its own every few trajectories, so that there is nothing to
   * know by heart and names are copied from what a search shows.
   */
  readonly worlds: 'own' | 'others';
  readonly habits: Habits;
  /** Trajectories to learn from. */
  readonly trajectories: number;
  readonly epochs: number;
  readonly batchSequences: number;
  readonly learningRate: number;
}

/** Everything that decides the warm start. */
export interface TinyRecipe {
  readonly seed: number;
  /** Passages of a search, in turn, so that the policy has seen few and many. */
  readonly topKs: readonly number[];
  /** One after the other. */
  readonly stages: readonly TinyStage[];
}

/** First every step is learned, then to leave them out. */
export const TINY_RECIPE: TinyRecipe = {
  seed: 1,
  topKs: [3, 1, 5],
  stages: [
    {
      name: 'skills',
      worlds: 'others',
      habits: GOOD_HABITS,
      trajectories: 10000,
      epochs: 1,
      batchSequences: 16,
      learningRate: 2e-3,
    },
    {
      name: 'habits',
      worlds: 'own',
      habits: WARM_START_HABITS,
      trajectories: 1600,
      epochs: 1,
      batchSequences: 16,
      learningRate: 4e-4,
    },
  ],
};
