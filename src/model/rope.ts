// Rotary position tables.

import type { RopeScaling } from './decoder-config.js';

export interface RopeTables {
  /** f32 [positions, headDim / 2] */
  readonly cosines: Float32Array;
  /** f32 [positions, headDim / 2] */
  readonly sines: Float32Array;
}

export interface RopeSettings {
  readonly headDim: number;
  readonly theta: number;
  readonly scaling: RopeScaling;
  /** Divisors of the frequencies, [headDim / 2], for scaling `stored`. */
  readonly storedFactors?: Float32Array;
}

/**
 * Angular frequency of each rotated pair, radians a position, in float32 as the models were trained with.
 *   f_i = theta^(-2i / headDim), then scaled
 * @returns f32 [headDim / 2]
 * @see Su et al. 2021, arXiv:2104.09864, section 3.4.2
 */
export function ropeFrequencies({ headDim, theta, scaling, storedFactors }: RopeSettings): Float32Array {
  return Float32Array.from({ length: headDim / 2 }, (_, index) => {
    const frequency = Math.fround(1 / Math.fround(theta ** ((2 * index) / headDim)));
    if (scaling.kind === 'stored') return frequency / (storedFactors?.[index] ?? 1);
    return scaling.kind === 'llama3' ? llama3(frequency, scaling) : frequency;
  });
}

/**
 * Wavelengths beyond originalPositions / lowFrequencyFactor are stretched by `factor`, those below
 * originalPositions / highFrequencyFactor are kept, and between them the two are mixed linearly in 1 / wavelength.
 */
function llama3(frequency: number, scaling: Extract<RopeScaling, { kind: 'llama3' }>): number {
  const { factor, lowFrequencyFactor: low, highFrequencyFactor: high, originalPositions } = scaling;
  const turns = (originalPositions * frequency) / (2 * Math.PI);
  if (turns < low) return frequency / factor;
  if (turns > high) return frequency;
  const smooth = (turns - low) / (high - low);
  return ((1 - smooth) * frequency) / factor + smooth * frequency;
}

/** Cosines and sines of position times frequency, for positions 0 to `positions` - 1. */
export function ropeTables(settings: RopeSettings, positions: number): RopeTables {
  const frequencies = ropeFrequencies(settings);
  const half = frequencies.length;
  const cosines = new Float32Array(positions * half);
  const sines = new Float32Array(positions * half);
  for (let position = 0; position < positions; position++)
    for (let index = 0; index < half; index++) {
      const angle = Math.fround(position * frequencies[index]!);
      cosines[position * half + index] = Math.cos(angle);
      sines[position * half + index] = Math.sin(angle);
    }
  return { cosines, sines };
}
