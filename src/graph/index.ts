// graph/: a small closed vocabulary of tensor operations, graphs over it, and their way to ONNX.
// One file per operation holds its shape and type rule; `verify` checks every graph that was built.
// Never knows what a model is, never runs a graph.

export { GraphBuilder } from './builder.js';
export { gradients } from './gradients.js';
export type { Graph } from './graph.js';
export { type SplitGraphs, splitAtSeeds } from './split.js';
export { toOnnx } from './to-onnx.js';
export type { Value } from './value.js';
