// One norm over the gradients of all parameters, which also finds the first that is not finite.

import { InvalidInputError, NonFiniteError } from '../../errors.js';
import type { Parameter } from '../training-model.js';

/**
 * Euclidean norm over all entries of all gradients, in float64.
 * @throws {NonFiniteError} an entry is not finite; names the parameter and the entry
 */
export function gradientNorm(parameters: readonly Pick<Parameter, 'name' | 'gradient'>[]): number {
  let total = 0;
  for (const parameter of parameters) {
    let squares = 0;
    for (let i = 0; i < parameter.gradient.length; i++) squares += parameter.gradient[i]! ** 2;
    // Squares of float32 numbers cannot overflow float64, so an unfinished sum means an unfinished entry.
    if (!Number.isFinite(squares)) throw notFinite(parameter.name, 'gradient', parameter.gradient);
    total += squares;
  }
  return Math.sqrt(total);
}

/**
 * Factor that brings a gradient of this norm down to the limit: max / (norm + 1e-6), at most 1, as torch has it.
 * @throws {InvalidInputError} the limit is not positive
 */
export function clipScale(norm: number, maxNorm: number): number {
  if (!(maxNorm > 0))
    throw new InvalidInputError(`maxGradientNorm must be positive, got ${maxNorm}`, 'maxGradientNorm');
  return Math.min(1, maxNorm / (norm + 1e-6));
}

/** @throws {NonFiniteError} a value of a parameter is not finite or beyond its limit; names it and the entry */
export function checkValues(parameters: readonly Pick<Parameter, 'name' | 'values' | 'largest'>[]): void {
  for (const { name, values, largest = Number.MAX_VALUE } of parameters)
    for (let i = 0; i < values.length; i++) {
      const size = Math.abs(values[i]!);
      if (size <= largest) continue;
      if (!Number.isFinite(size)) throw notFinite(name, 'value', values);
      throw new NonFiniteError(
        `value of parameter ${name}: entry ${i} has grown to ${values[i]}; the engine takes at most ${largest}`,
        { details: { parameter: name, entry: i } },
      );
    }
}

function notFinite(name: string, what: string, entries: Float32Array): NonFiniteError {
  const at = entries.findIndex((entry) => !Number.isFinite(entry));
  return new NonFiniteError(`${what} of parameter ${name}: entry ${at} is not finite (${entries[at]})`, {
    details: { parameter: name, entry: at },
  });
}
