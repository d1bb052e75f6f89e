// The same interface over onnxruntime-node's own binding. Slower: every output is copied into its bound array.

import { existsSync } from 'node:fs';
import type { InferenceSession as NodeSession, Tensor, TypedTensor } from 'onnxruntime-node';
import { NotFoundError, RuntimeError } from '../../errors.js';
import type {
  Binding,
  ElementType,
  InferenceSession,
  OnnxRuntime,
  SessionOptions,
  TensorView,
  ValueInfo,
} from '../session.js';
import { checkName, checkView, elementCount } from './element-type.js';
import { sessionEntries } from './session-entries.js';
import { closeTerminateHandle, createTerminateHandle, requestTerminate, terminable } from './terminate.js';

type Ort = typeof import('onnxruntime-node');

/** The runtime over onnxruntime-node. @throws when the package cannot be loaded */
export async function openBindingRuntime(): Promise<OnnxRuntime> {
  const ort = await import('onnxruntime-node');
  keepHalfBits(ort);
  return {
    kind: 'binding',
    version: ort.env.versions.node ?? ort.env.versions.common,
    openSession: (graphFile, options) => openSession(ort, graphFile, options),
    openWeights: () => ({ close() {} }),
    // Its runs leave the thread by themselves.
    startRunner: async () => ({ async close() {} }),
    terminate: (handle) => requestTerminate(handle, null),
  };
}

/**
 * onnxruntime-common keeps float16 as Float16Array where the engine has it, but the native part of 1.30 cannot
 * read that. It looks once, at its first tensor, and must see none then: the bits stay in a Uint16Array.
 */
function keepHalfBits(ort: Ort): void {
  const engine = globalThis as { Float16Array?: unknown };
  const { Float16Array } = engine;
  if (Float16Array === undefined) return;
  engine.Float16Array = undefined;
  try {
    new ort.Tensor('float32', new Float32Array(1), [1]);
  } finally {
    engine.Float16Array = Float16Array;
  }
}

async function openSession(ort: Ort, graphFile: string, options: SessionOptions): Promise<InferenceSession> {
  if (!existsSync(graphFile)) throw new NotFoundError(`graph file ${graphFile} does not exist`);
  const session = await ort.InferenceSession.create(graphFile, {
    intraOpNumThreads: options.threads,
    graphOptimizationLevel: 'all',
    logSeverityLevel: 4,
    extra: nested(sessionEntries(options)),
  }).catch((cause: Error) => {
    throw new RuntimeError(`graph ${graphFile}: onnxruntime: ${cause.message}`, { cause });
  });
  let open = true;
  return {
    inputs: session.inputMetadata.map((meta) => valueInfo(meta, graphFile)),
    outputs: session.outputMetadata.map((meta) => valueInfo(meta, graphFile)),
    createBinding() {
      if (!open) throw new RuntimeError(`session of ${graphFile} is closed`);
      return createBinding(ort, session, () => open);
    },
    close() {
      if (!open) return;
      open = false;
      void session.release();
    },
  };
}

/** onnxruntime-node takes config entries as nested objects: `session.a.b` becomes `{ session: { a: { b } } }`. */
function nested(entries: Readonly<Record<string, string>>): Record<string, unknown> {
  const root: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(entries)) {
    const parts = key.split('.');
    const last = parts.pop() as string;
    let node = root;
    for (const part of parts) node = (node[part] ??= {}) as Record<string, unknown>;
    node[last] = value;
  }
  return root;
}

function valueInfo(meta: NodeSession.ValueMetadata, graphFile: string): ValueInfo {
  if (!meta.isTensor) throw new RuntimeError(`graph ${graphFile}: "${meta.name}" is not a tensor`);
  return { name: meta.name, type: meta.type as ElementType, shape: meta.shape.map((size) => size || '?') };
}

function createBinding(ort: Ort, session: NodeSession, sessionOpen: () => boolean): Binding {
  const names = { input: session.inputNames, output: session.outputNames };
  const inputs = new Map<string, TensorView>();
  const outputs = new Map<string, TensorView>();
  const terminateHandle = createTerminateHandle(0n);
  let open = true;

  function bind(side: 'input' | 'output', name: string, view: TensorView): void {
    if (!open) throw new RuntimeError(`binding is closed, cannot bind "${name}"`);
    checkName(names, side, name);
    checkView(name, view);
    (side === 'input' ? inputs : outputs).set(name, view);
  }

  async function runOnce(): Promise<void> {
    const feeds: Record<string, Tensor> = {};
    for (const [name, view] of inputs) feeds[name] = toTensor(ort, view);
    const results = await session.run(feeds, [...outputs.keys()]).catch((cause: Error) => {
      throw new RuntimeError(`onnxruntime: ${cause.message}`, { cause });
    });
    if (!open) throw new RuntimeError('binding was closed during its run');
    for (const [name, view] of outputs) copyOut(name, results[name] as Tensor, view);
  }

  return {
    terminateHandle,
    bindInput: (name, view) => bind('input', name, view),
    bindOutput: (name, view) => bind('output', name, view),
    async run() {
      if (!open || !sessionOpen()) throw new RuntimeError('binding is closed, cannot run');
      await terminable(terminateHandle, null, runOnce);
    },
    terminate: () => requestTerminate(terminateHandle, null),
    close() {
      open = false;
      closeTerminateHandle(terminateHandle, () => {});
      inputs.clear();
      outputs.clear();
    },
  };
}

function toTensor(ort: Ort, view: TensorView): Tensor {
  const part = view.data.subarray(0, elementCount(view.shape));
  // The binding does not read shared memory.
  const data = part.buffer instanceof SharedArrayBuffer ? part.slice() : part;
  return new ort.Tensor(view.type as Tensor.Type, data as never, [...view.shape]) as TypedTensor<Tensor.Type>;
}

function copyOut(name: string, tensor: Tensor, view: TensorView): void {
  const [got, wanted] = [tensor.dims.join(), view.shape.join()];
  if (got !== wanted) throw new RuntimeError(`output "${name}": bound as [${wanted}], computed as [${got}]`);
  (view.data as Uint8Array).set(tensor.data as unknown as Uint8Array);
}
