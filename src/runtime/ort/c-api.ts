// Sessions and bindings over the C API. Tensors are views of typed arrays; nothing is copied.

import { existsSync } from 'node:fs';
import { NotFoundError, RuntimeError } from '../../errors.js';
import type {
  Binding,
  InferenceSession,
  OnnxRuntime,
  SessionOptions,
  TensorView,
  ValueInfo,
} from '../session.js';
import { type Api, createApi, type Handle } from './api.js';
import { checkView, elementCode, elementTypeOf, viewBytes } from './element-type.js';
import { type NativeLibrary, openLibrary } from './library.js';

/** Messages of onnxruntime below this severity are not written: a failure's text is in its status. */
const LOG_FATAL = 4;
const OPTIMIZE_ALL = 99;
const ARENA_ALLOCATOR = 1;
const DEFAULT_MEMORY = 0;

interface Context {
  readonly api: Api;
  readonly env: Handle;
  readonly memory: Handle;
}

/** The runtime over the C API, for the thread that calls. @throws when koffi or the library cannot be loaded */
export async function openNativeRuntime(): Promise<OnnxRuntime & { readonly library: NativeLibrary }> {
  const library = await openLibrary();
  const api = createApi(library);
  // onnxruntime keeps one environment a process and counts its users; it lives as long as the process.
  const context: Context = {
    api,
    env: api.createEnv(LOG_FATAL, 'searchloop'),
    memory: api.createCpuMemoryInfo(ARENA_ALLOCATOR, DEFAULT_MEMORY),
  };
  return {
    kind: 'c-api',
    version: library.version,
    library,
    openSession: async (graphFile, options) => openSession(context, graphFile, options),
  };
}

function openSession(context: Context, graphFile: string, options: SessionOptions): InferenceSession {
  const { api, env } = context;
  if (!existsSync(graphFile)) throw new NotFoundError(`graph file ${graphFile} does not exist`);
  const sessionOptions = createOptions(api, options);
  let session: Handle;
  try {
    session = api.createSession(env, graphFile, sessionOptions);
  } catch (cause) {
    throw new RuntimeError(`graph ${graphFile}: ${(cause as Error).message}`, { cause });
  } finally {
    api.releaseSessionOptions(sessionOptions);
  }
  const bindings = new Set<Binding>();
  let open = true;
  try {
    return {
      inputs: valueInfos(api, session, 'input', graphFile),
      outputs: valueInfos(api, session, 'output', graphFile),
      createBinding() {
        if (!open) throw new RuntimeError(`session of ${graphFile} is closed`);
        const binding = createBinding(context, session, () => bindings.delete(binding));
        bindings.add(binding);
        return binding;
      },
      close() {
        if (!open) return;
        open = false;
        for (const binding of bindings) binding.close();
        api.releaseSession(session);
      },
    };
  } catch (error) {
    api.releaseSession(session);
    throw error;
  }
}

function createOptions(api: Api, options: SessionOptions): Handle {
  const handle = api.createSessionOptions();
  try {
    api.setGraphOptimization(handle, OPTIMIZE_ALL);
    api.setThreads(handle, options.threads);
    const entries: Record<string, string> = {
      // Denormal numbers of real weights cost a tenth and more, and change no result that matters.
      'session.set_denormal_as_zero': '1',
      'session.intra_op.allow_spinning': options.spinning === false ? '0' : '1',
      ...options.config,
    };
    for (const [key, value] of Object.entries(entries)) api.addConfigEntry(handle, key, value);
    return handle;
  } catch (error) {
    api.releaseSessionOptions(handle);
    throw error;
  }
}

function valueInfos(api: Api, session: Handle, side: 'input' | 'output', graphFile: string): ValueInfo[] {
  const [count, nameOf, typeOf] =
    side === 'input'
      ? [api.inputCount, api.inputName, api.inputTypeInfo]
      : [api.outputCount, api.outputName, api.outputTypeInfo];
  return Array.from({ length: Number(count(session)) }, (_, at) => {
    const name = nameOf(session, at);
    const where = `graph ${graphFile}, ${side} "${name}"`;
    const typeInfo = typeOf(session, at);
    try {
      const info = api.tensorInfo(typeInfo);
      if (info === null) throw new RuntimeError(`${where} is not a tensor`);
      return { name, type: elementTypeOf(info.code, where), shape: info.shape };
    } finally {
      api.releaseTypeInfo(typeInfo);
    }
  });
}

/** Memory for tensors without elements: onnxruntime wants an address all the same. */
const NOTHING = new Uint8Array(new ArrayBuffer(8));

function createBinding(context: Context, session: Handle, onClose: () => void): Binding {
  const { api, memory } = context;
  const binding = api.createBinding(session);
  const runOptions = api.createRunOptions();
  /** Bound values by side and name. The arrays are held here so that their memory stays. */
  const bound = new Map<string, { value: Handle; data: TensorView['data'] }>();
  let open = true;

  function bind(side: 'input' | 'output', name: string, view: TensorView): void {
    if (!open) throw new RuntimeError(`binding is closed, cannot bind "${name}"`);
    checkView(name, view);
    const bytes = viewBytes(view);
    const value = api.createTensor(
      memory,
      api.address(bytes === 0 ? NOTHING : view.data),
      bytes,
      BigInt64Array.from(view.shape, BigInt),
      view.shape.length,
      elementCode(view.type),
    );
    try {
      (side === 'input' ? api.bindInput : api.bindOutput)(binding, name, value);
    } catch (error) {
      api.releaseValue(value);
      throw error;
    }
    const key = `${side}:${name}`;
    const previous = bound.get(key);
    bound.set(key, { value, data: view.data });
    if (previous) api.releaseValue(previous.value);
  }

  return {
    bindInput: (name, view) => bind('input', name, view),
    bindOutput: (name, view) => bind('output', name, view),
    async run() {
      if (!open) throw new RuntimeError('binding is closed, cannot run');
      api.runWithBinding(session, runOptions, binding);
    },
    terminate() {
      if (open) api.setTerminate(runOptions);
    },
    close() {
      if (!open) return;
      open = false;
      api.releaseBinding(binding);
      api.releaseRunOptions(runOptions);
      for (const { value } of bound.values()) api.releaseValue(value);
      bound.clear();
      onClose();
    },
  };
}
