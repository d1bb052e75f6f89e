// runtime/: onnxruntime sessions, worker threads and the pool.
// The only room that touches onnxruntime-node, koffi and piscina.
// Never knows what a graph computes.

export { allocate } from './ort/element-type.js';
export { openRuntime, type RuntimeKind } from './runtime.js';
export type * from './session.js';
