// What goes on from step to step beside the trained values: running baselines, and the weight of the KL.

import {
  AdaptiveKl,
  type Carried,
  type RunningBaselineState,
  RunningBaselines,
  type RunSettings,
} from '../../training/index.js';

export interface Learned {
  readonly baselines: RunningBaselines;
  /** Weight of the KL in the next step. */
  readonly klBeta: number;
  /** After a step. @param kl  mean over its sampled tokens; undefined: not measured */
  follow(kl: number | undefined, rollouts: number): void;
  /** To be kept with the step's checkpoint. */
  carried(): Carried;
}

/**
 * @param carried  of the last commit: where there is a target, the weight of the KL goes on from what it held
 * @throws {InvalidInputError} a target for the KL, and no weight that could follow it
 */
export function learnedSoFar(
  { objective, klTarget, klHorizon }: Pick<RunSettings, 'objective' | 'klTarget' | 'klHorizon'>,
  carried: Carried = {},
): Learned {
  const baselines = new RunningBaselines(carried.baselines as RunningBaselineState | undefined);
  const adaptive =
    klTarget === null
      ? null
      : new AdaptiveKl({
          beta: (carried.klBeta as number | undefined) ?? objective.klBeta,
          target: klTarget,
          horizon: klHorizon,
        });
  return {
    baselines,
    get klBeta() {
      return adaptive?.beta ?? objective.klBeta;
    },
    follow(kl, rollouts) {
      if (kl !== undefined) adaptive?.update(kl, rollouts);
    },
    carried() {
      return { baselines: baselines.state(), klBeta: this.klBeta };
    },
  };
}
