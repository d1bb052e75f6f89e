// A decoder with what was trained in its weights: an adapter added, or all of them replaced.

import { type Adapter, type DecoderWeights, decoderWeights } from '../../model/index.js';
import type { TensorSource } from '../../weights/index.js';

/**
 * W + scale * B A for every layer that the adapter changes; the rest as it is. Neither embedding nor head changes,
 * also where they are one tensor.
 */
export function mergedWeights(weights: DecoderWeights, adapter: Adapter | null): DecoderWeights {
  if (adapter === null) return weights;
  return {
    config: weights.config,
    part: (part) => weights.part(part),
    layer(layer, part) {
      const values = weights.layer(layer, part);
      const change = adapter.modules.find((item) => item.layer === layer && item.module === part);
      return change === undefined ? values : sum(values, change);
    },
  };
}

/**
 * The weights of a checkpoint in place of a model's own. Rotary factors that a file stores are not trained: they stay.
 * @throws {FileFormatError} a tensor is missing or has another shape
 */
export function replacedWeights({ config, part }: DecoderWeights, trained: TensorSource): DecoderWeights {
  const { layer, part: trainedPart } = decoderWeights({ ...config, ropeScaling: { kind: 'none' } }, trained);
  return { config, layer, part: (name) => (name === 'ropeFactors' ? part(name) : trainedPart(name)) };
}

/** Sums in double precision. `w` is [out, in], `a` [rank, in], `b` [out, rank]. */
function sum(w: Float32Array, { a, b, rank, scale }: Adapter['modules'][number]): Float32Array {
  const inner = a.length / rank;
  const merged = w.slice();
  const row = new Float64Array(inner);
  for (let out = 0; out < b.length / rank; out++) {
    row.fill(0);
    for (let r = 0; r < rank; r++) {
      const factor = scale * (b[out * rank + r] as number);
      for (let i = 0; i < inner; i++) row[i] = (row[i] as number) + factor * (a[r * inner + i] as number);
    }
    for (let i = 0; i < inner; i++)
      merged[out * inner + i] = (w[out * inner + i] as number) + (row[i] as number);
  }
  return merged;
}
