// The few layers that decoders are made of, over tensors of a weights file.

import type { GraphBuilder, Value } from '../graph/index.js';
import { storedConstant, type WeightsFile } from './weights-file.js';

/** RMS norm over the last axis with the stored scale `name`. */
export function rmsNorm(
  graph: GraphBuilder,
  weights: WeightsFile,
  name: string,
  x: Value,
  epsilon: number,
): Value {
  return graph.op('SimplifiedLayerNormalization', [x, storedConstant(graph, weights, `${name}.scale`)], {
    name,
    attributes: { axis: -1, epsilon, stash_type: 1 },
  });
}

/** Rows of the embedding table for int64 ids of any shape. */
export function embed(graph: GraphBuilder, weights: WeightsFile, ids: Value): Value {
  const table = storedConstant(graph, weights, 'embedding.weight');
  return graph.op('Gather', [table, ids], { name: 'embedding', attributes: { axis: 0 } });
}

/** x W^T (+ bias) with the stored weight [out, in] of `name`. */
export function linear(graph: GraphBuilder, weights: WeightsFile, name: string, x: Value): Value {
  const bias = weights.tensors[`${name}.bias`] ? storedConstant(graph, weights, `${name}.bias`) : null;
  const weight = storedConstant(graph, weights, `${name}.weight`);
  const product = graph.op('FusedMatMul', [x, weight], { name, attributes: { transB: 1 } });
  return bias === null ? product : graph.op('Add', [product, bias], { name: `${name}.biased` });
}
