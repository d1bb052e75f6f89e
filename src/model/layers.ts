// The few layers that decoders are made of, over tensors of a weights file.

import type { GraphBuilder, Value } from '../graph/index.js';
import { BLOCK_SIZE } from '../weights/index.js';
import { storedConstant, type WeightsFile } from './weights-file.js';

/** Activations are rounded to int8 in blocks, so that products run on integers. */
const ROUND_ACTIVATIONS = 4;

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
    results: 1,
  });
}

/** Rows of the embedding table for int64 ids of any shape. */
export function embed(graph: GraphBuilder, weights: WeightsFile, ids: Value): Value {
  const table = storedConstant(graph, weights, 'embedding.weight');
  if (weights.tensors['embedding.scales'] === undefined)
    return graph.op('Gather', [table, ids], { name: 'embedding', attributes: { axis: 0 } });
  const scales = storedConstant(graph, weights, 'embedding.scales');
  const attributes = { gather_axis: 0, quantize_axis: 1, block_size: BLOCK_SIZE, bits: 8 };
  return graph.op('GatherBlockQuantized', [table, ids, scales], { name: 'embedding', attributes });
}

/** x W^T (+ bias) with the stored weight [out, in] of `name`, whole or in blocks of 4 or 8 bits. */
export function linear(graph: GraphBuilder, weights: WeightsFile, name: string, x: Value): Value {
  const stored = (part: string): Value | null =>
    weights.tensors[`${name}.${part}`] ? storedConstant(graph, weights, `${name}.${part}`) : null;
  const weight = storedConstant(graph, weights, `${name}.weight`);
  const bias = stored('bias');
  const scales = stored('scales');
  if (scales !== null) {
    const inputs = [x, weight, scales, stored('zeros'), null, bias];
    while (inputs.at(-1) === null) inputs.pop();
    const [columns, , blockBytes] = weight.shape as [number, number, number];
    const attributes = {
      K: Number(x.shape.at(-1)),
      N: columns,
      bits: (blockBytes * 8) / BLOCK_SIZE,
      block_size: BLOCK_SIZE,
      accuracy_level: ROUND_ACTIVATIONS,
    };
    return graph.op('MatMulNBits', inputs, { name, attributes });
  }
  const product = graph.op('FusedMatMul', [x, weight], { name, attributes: { transB: 1 } });
  return bias === null ? product : graph.op('Add', [product, bias], { name: `${name}.biased` });
}
