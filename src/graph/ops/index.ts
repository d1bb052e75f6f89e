// The vocabulary: every operation a graph may hold. A name without a definition does not compile.

import type { OpDefinition } from '../op.js';
import type { OpType } from '../op-type.js';
import { add } from './add.js';
import { biasGelu } from './bias-gelu.js';
import { cast } from './cast.js';
import { concat } from './concat.js';
import { cumSum } from './cum-sum.js';
import { dequantizeLinear } from './dequantize-linear.js';
import { div } from './div.js';
import { exp } from './exp.js';
import { expand } from './expand.js';
import { fusedMatMul } from './fused-mat-mul.js';
import { gather } from './gather.js';
import { gatherBlockQuantized } from './gather-block-quantized.js';
import { gatherElements } from './gather-elements.js';
import { gemm } from './gemm.js';
import { groupQueryAttention } from './group-query-attention.js';
import { layerNormalization } from './layer-normalization.js';
import { logSoftmax } from './log-softmax.js';
import { matMul } from './mat-mul.js';
import { matMulNBits } from './mat-mul-nbits.js';
import { max } from './max.js';
import { mul } from './mul.js';
import { multiHeadAttention } from './multi-head-attention.js';
import { neg } from './neg.js';
import { oneHot } from './one-hot.js';
import { reduceL2 } from './reduce-l2.js';
import { reduceMean } from './reduce-mean.js';
import { reduceSum } from './reduce-sum.js';
import { reshape } from './reshape.js';
import { rotaryEmbedding } from './rotary-embedding.js';
import { shape } from './shape.js';
import { sigmoid } from './sigmoid.js';
import { simplifiedLayerNormalization } from './simplified-layer-normalization.js';
import { skipLayerNormalization } from './skip-layer-normalization.js';
import { softmax } from './softmax.js';
import { split } from './split.js';
import { sub } from './sub.js';
import { transpose } from './transpose.js';

export const OPS: Readonly<Record<OpType, OpDefinition>> = {
  Add: add,
  BiasGelu: biasGelu,
  Cast: cast,
  Concat: concat,
  CumSum: cumSum,
  DequantizeLinear: dequantizeLinear,
  Div: div,
  Exp: exp,
  Expand: expand,
  FusedMatMul: fusedMatMul,
  Gather: gather,
  GatherBlockQuantized: gatherBlockQuantized,
  GatherElements: gatherElements,
  Gemm: gemm,
  GroupQueryAttention: groupQueryAttention,
  LayerNormalization: layerNormalization,
  LogSoftmax: logSoftmax,
  MatMul: matMul,
  MatMulNBits: matMulNBits,
  Max: max,
  Mul: mul,
  MultiHeadAttention: multiHeadAttention,
  Neg: neg,
  OneHot: oneHot,
  ReduceL2: reduceL2,
  ReduceMean: reduceMean,
  ReduceSum: reduceSum,
  Reshape: reshape,
  RotaryEmbedding: rotaryEmbedding,
  Shape: shape,
  Sigmoid: sigmoid,
  SimplifiedLayerNormalization: simplifiedLayerNormalization,
  SkipLayerNormalization: skipLayerNormalization,
  Softmax: softmax,
  Split: split,
  Sub: sub,
  Transpose: transpose,
};
