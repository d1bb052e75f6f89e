// runtime/: onnxruntime sessions, worker threads and the pool.
// The only room that touches onnxruntime-node, koffi and piscina.
// Never knows what a graph computes.

export { allocate } from './ort/element-type.js';
export { startPool, type TaskPool } from './pool.js';
export { poolTask, type TaskContext } from './pool-task.js';
export { cpuFeatures, runtimeReport } from './report.js';
export { openRuntime } from './runtime.js';
export type {
  Binding,
  ElementType,
  InferenceSession,
  OnnxRuntime,
  Runner,
  SessionOptions,
  SharedWeights,
  TensorView,
  ValueInfo,
} from './session.js';
export { startWorker, type WorkerClient, type WorkerState } from './workers/client.js';
export { createLazyWorker } from './workers/lazy.js';
export type { Method } from './workers/messages.js';
export { serveWorker, transferring } from './workers/serve.js';
