// The values that a precision's blocks stand for, as weights of their own.

import {
  BLOCK_SIZE,
  dequantiseMatrix,
  type QuantisedMatrix,
  quantise4,
  quantise8,
} from '../weights/index.js';
import { type DecoderWeights, isLinearModule, type LinearModule, linearShape } from './decoder-weights.js';
import { END_BITS, type GraphPrecision, LAYER_BITS } from './decoder-weights-file.js';

/**
 * The weights that the graphs of `precision` compute with, in float32: what to train on, to score with, or to read long
 * prompts with where float32 products are the faster ones.
 */
export function quantisedValues(weights: DecoderWeights, precision: GraphPrecision): DecoderWeights {
  const { config } = weights;
  const rounded = (values: Float32Array, columns: number, bits: 4 | 8 | 32): Float32Array => {
    if (bits === 32) return values;
    return dequantiseMatrix((bits === 8 ? quantise8 : quantise4)(values, values.length / columns, columns));
  };
  return {
    config,
    part(part) {
      const values = weights.part(part);
      if (part === 'norm' || part === 'ropeFactors') return values;
      // An embedding whose rows do not fill whole blocks stays as it is.
      if (part === 'embedding' && config.hiddenSize % BLOCK_SIZE !== 0) return values;
      return rounded(values, config.hiddenSize, END_BITS[precision]);
    },
    layer(layer, part) {
      const values = weights.layer(layer, part);
      return isLinearModule(part)
        ? rounded(values, linearShape(config, part)[1], LAYER_BITS[precision])
        : values;
    },
  };
}

/**
 * A linear layer in the 8-bit blocks that the graphs of `precision` compute with, a quarter of its values in float32.
 * @returns null where the precision has other blocks, or rows do not fill whole ones
 */
export function quantisedLinear(
  weights: DecoderWeights,
  precision: GraphPrecision,
  layer: number,
  module: LinearModule,
): QuantisedMatrix | null {
  const [rows, columns] = linearShape(weights.config, module);
  if (LAYER_BITS[precision] !== 8 || columns % BLOCK_SIZE !== 0) return null;
  return quantise8(weights.layer(layer, module), rows, columns);
}
