// graph/: a small closed vocabulary of tensor operations, graphs over it, and their way to ONNX.
// One file per operation holds its shape and type rule; `verify` checks every graph that was built.
// Never knows what a model is, never runs a graph.

export { type ConstantData, GraphBuilder } from './builder.js';
export type { Dimension, Shape } from './dimension.js';
export type { GradientCall, GradientRule } from './gradient-call.js';
export { gradients } from './gradients.js';
export type { Constant, ExternalData, Graph, GraphNode } from './graph.js';
export type { NodeOptions } from './graph-writer.js';
export type { OpType } from './op-type.js';
export { type SplitGraphs, splitAtSeeds } from './split.js';
export { toOnnx } from './to-onnx.js';
export type { AttributeValue, Value } from './value.js';
export { verify } from './verify.js';
