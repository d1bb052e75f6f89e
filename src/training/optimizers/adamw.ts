// AdamW (1711.05101, algorithm 2): Adam with weight decay apart from the gradient, as torch computes it.
//
//   m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2
//   w <- w (1 - lr decay) - lr / (1 - b1^n) * m / (sqrt(v) / sqrt(1 - b2^n) + eps)
//
// Moments are float32 like the weights; the arithmetic of an entry is float64. Everything happens in place.

import { InvalidInputError } from '../../errors.js';
import type { Parameter } from '../training-model.js';
import { clipScale, gradientNorm } from './gradient-norm.js';

const BETA1 = 0.9;
const BETA2 = 0.999;
const EPSILON = 1e-8;

/** A tensor of the optimizer's state; `values` is the memory that is used, so writing it restores the state. */
export interface Moment {
  readonly name: string;
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

export interface UpdateRule {
  readonly learningRate: number;
  /** 0 for adapters, 0.01 for whole weights. */
  readonly weightDecay: number;
  /** Gradients are scaled down to this norm over all parameters. */
  readonly maxGradientNorm: number;
}

export class AdamW {
  #updates = 0;
  readonly #first: readonly Float32Array[];
  readonly #second: readonly Float32Array[];

  constructor(private readonly parameters: readonly Parameter[]) {
    this.#first = parameters.map(({ values }) => new Float32Array(values.length));
    this.#second = parameters.map(({ values }) => new Float32Array(values.length));
  }

  /** Updates made so far; with the moments this is the whole state. */
  get updates(): number {
    return this.#updates;
  }

  /** `first.<parameter>` and `second.<parameter>`, in the memory that is used. */
  get moments(): readonly Moment[] {
    return this.parameters.flatMap(({ name, shape }, p) => [
      { name: `first.${name}`, shape, values: this.#first[p]! },
      { name: `second.${name}`, shape, values: this.#second[p]! },
    ]);
  }

  /**
   * Sets the count of updates; the moments are written into `moments` before or after.
   * @throws {InvalidInputError} not a whole number of updates
   */
  restore(updates: number): void {
    if (!Number.isInteger(updates) || updates < 0) {
      throw new InvalidInputError(`updates: expected a whole number from 0, got ${updates}`, 'updates');
    }
    this.#updates = updates;
  }

  /**
   * Moves the parameters by their `gradient`, which is left as it is.
   * @returns the gradient's norm over all parameters, before clipping
   * @throws {NonFiniteError} a gradient is not finite; nothing was changed
   */
  update({ learningRate, weightDecay, maxGradientNorm }: UpdateRule): { readonly gradientNorm: number } {
    const norm = gradientNorm(this.parameters);
    const scale = clipScale(norm, maxGradientNorm);
    this.#updates += 1;
    const step = learningRate / (1 - BETA1 ** this.#updates);
    const rootOfBias = Math.sqrt(1 - BETA2 ** this.#updates);
    const kept = 1 - learningRate * weightDecay;
    this.parameters.forEach(({ values, gradient }, p) => {
      const first = this.#first[p]!;
      const second = this.#second[p]!;
      for (let i = 0; i < values.length; i++) {
        const g = gradient[i]! * scale;
        const m = BETA1 * first[i]! + (1 - BETA1) * g;
        const v = BETA2 * second[i]! + (1 - BETA2) * g * g;
        first[i] = m;
        second[i] = v;
        values[i] = values[i]! * kept - step * (m / (Math.sqrt(v) / rootOfBias + EPSILON));
      }
    });
    return { gradientNorm: norm };
  }
}
