// runtime/: onnxruntime sessions, worker threads and the pool.
// The only room that touches onnxruntime-node, koffi and piscina.
// Never knows what a graph computes.

export { int64, numbers, writeInt64 } from './int64.js';
export { allocate } from './ort/element-type.js';
export { type PoolOptions, startPool, type TaskOptions, type TaskPool } from './pool.js';
export { poolTask, type TaskContext } from './pool-task.js';
export { cpuFeatures, type RuntimeReport, runtimeReport } from './report.js';
export { openRuntime, type RuntimeKind } from './runtime.js';
export type * from './session.js';
export { startWorker, type WorkerClient, type WorkerOptions, type WorkerState } from './workers/client.js';
export type { CallOptions } from './workers/connection.js';
export { createLazyWorker, type LazyWorker } from './workers/lazy.js';
export type { Method, Methods } from './workers/messages.js';
export { setCurrentThreadPriority } from './workers/priority.js';
export { type CallContext, type Service, serveWorker, transferring } from './workers/serve.js';
