// Adaptive KL coefficient (Ziegler et al., 1909.08593, section 2.2): beta follows the KL that is measured.
//
//   beta <- beta (1 + clip(KL / target - 1, -0.2, 0.2) * min(n / horizon, 1))
//
// n is the number of rollouts since the last update. The minimum is ours: with more rollouts than the horizon the factor would
// leave [0.8, 1.2], and beyond five times the horizon beta would turn negative and reward the divergence. The paper's KL is that of whole sequences; ours, like verl's, may be
// any mean, as long as the target is in the same unit. Search-R1 keeps beta fixed.

import { InvalidInputError } from '../../errors.js';

const LARGEST_ERROR = 0.2;

export interface AdaptiveKlSettings {
  /** Where beta begins, or what a checkpoint held. */
  readonly beta: number;
  /** Nats, in the unit of the KL given to `update`. */
  readonly target: number;
  /** Rollouts. */
  readonly horizon: number;
}

export class AdaptiveKl {
  #beta: number;

  /** @throws {InvalidInputError} a number is not positive */
  constructor(private readonly settings: AdaptiveKlSettings) {
    for (const [name, value] of Object.entries(settings)) {
      if (!(value > 0))
        throw new InvalidInputError(`adaptive KL: ${name} must be positive, got ${value}`, name);
    }
    this.#beta = settings.beta;
  }

  get beta(): number {
    return this.#beta;
  }

  /**
   * @param kl        measured mean
   * @param rollouts  since the last update
   */
  update(kl: number, rollouts: number): void {
    const { target, horizon } = this.settings;
    const error = Math.min(Math.max(kl / target - 1, -LARGEST_ERROR), LARGEST_ERROR);
    this.#beta *= 1 + error * Math.min(rollouts / horizon, 1);
  }
}
