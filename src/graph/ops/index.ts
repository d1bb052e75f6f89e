// The vocabulary: every operation a graph may hold. A name that is missing here does not compile.

import type { OpDefinition } from '../op.js';
import { add } from './add.js';
import { biasGelu } from './bias-gelu.js';
import { cast } from './cast.js';
import { cumSum } from './cum-sum.js';
import { div } from './div.js';
import { fusedMatMul } from './fused-mat-mul.js';
import { gather } from './gather.js';
import { gatherBlockQuantized } from './gather-block-quantized.js';
import { groupQueryAttention } from './group-query-attention.js';
import { layerNormalization } from './layer-normalization.js';
import { logSoftmax } from './log-softmax.js';
import { matMul } from './mat-mul.js';
import { matMulNBits } from './mat-mul-nbits.js';
import { max } from './max.js';
import { mul } from './mul.js';
import { multiHeadAttention } from './multi-head-attention.js';
import { reduceL2 } from './reduce-l2.js';
import { reduceSum } from './reduce-sum.js';
import { reshape } from './reshape.js';
import { rotaryEmbedding } from './rotary-embedding.js';
import { sigmoid } from './sigmoid.js';
import { simplifiedLayerNormalization } from './simplified-layer-normalization.js';
import { skipLayerNormalization } from './skip-layer-normalization.js';
import { split } from './split.js';
import { sub } from './sub.js';

const DEFINITIONS = {
  Add: add,
  BiasGelu: biasGelu,
  Cast: cast,
  CumSum: cumSum,
  Div: div,
  FusedMatMul: fusedMatMul,
  Gather: gather,
  GatherBlockQuantized: gatherBlockQuantized,
  GroupQueryAttention: groupQueryAttention,
  LayerNormalization: layerNormalization,
  MatMul: matMul,
  MatMulNBits: matMulNBits,
  Max: max,
  Mul: mul,
  MultiHeadAttention: multiHeadAttention,
  ReduceL2: reduceL2,
  LogSoftmax: logSoftmax,
  ReduceSum: reduceSum,
  Reshape: reshape,
  RotaryEmbedding: rotaryEmbedding,
  Sigmoid: sigmoid,
  SimplifiedLayerNormalization: simplifiedLayerNormalization,
  SkipLayerNormalization: skipLayerNormalization,
  Split: split,
  Sub: sub,
} as const;

export type OpType = keyof typeof DEFINITIONS;

export const OPS: Readonly<Record<OpType, OpDefinition>> = DEFINITIONS;
