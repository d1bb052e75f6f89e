// Sessions over the C API. Tensors are views of typed arrays; nothing is copied.

import { existsSync } from 'node:fs';
import { NotFoundError, RuntimeError } from '../../errors.js';
import type { Binding, InferenceSession, OnnxRuntime, SessionOptions, ValueInfo } from '../session.js';
import type { Api, Handle } from './api.js';
import { type Context, openContext } from './context.js';
import { elementTypeOf } from './element-type.js';
import { createBinding } from './io-binding.js';
import { enter, strike } from './ledger.js';
import { startRunner } from './runner.js';
import { sessionEntries } from './session-entries.js';
import { requestTerminate } from './terminate.js';
import { openWeights, type UsedWeights, useWeights } from './weights.js';

const OPTIMIZE_ALL = 99;

/** The runtime over the C API, for the thread that calls. @throws when koffi or the library cannot be loaded */
export async function openNativeRuntime(): Promise<OnnxRuntime> {
  const context = await openContext();
  const { api, library } = context;
  return {
    kind: 'c-api',
    version: library.version,
    openSession: async (graphFile, options) => openSession(context, graphFile, options),
    openWeights: (file, tensors) => openWeights(context, file, tensors),
    startRunner,
    terminate: (handle) => requestTerminate(handle, api),
  };
}

function openSession(context: Context, graphFile: string, options: SessionOptions): InferenceSession {
  const { api, library } = context;
  if (!existsSync(graphFile)) throw new NotFoundError(`graph file ${graphFile} does not exist`);
  const { session, weightsDone } = createSession(context, graphFile, options);
  const release = () => {
    api.releaseSession(session);
    weightsDone?.();
    library.trimMemory();
  };
  try {
    const inputs = valueInfos(api, session, 'input', graphFile);
    const outputs = valueInfos(api, session, 'output', graphFile);
    enter('session', session);
    return sessionOver(context, session, graphFile, inputs, outputs, release);
  } catch (error) {
    release();
    throw error;
  }
}

function sessionOver(
  context: Context,
  session: Handle,
  graphFile: string,
  inputs: ValueInfo[],
  outputs: ValueInfo[],
  release: () => void,
): InferenceSession {
  const names = { input: inputs.map(({ name }) => name), output: outputs.map(({ name }) => name) };
  const bindings = new Set<Binding>();
  let open = true;
  return {
    inputs,
    outputs,
    createBinding() {
      if (!open) throw new RuntimeError(`session of ${graphFile} is closed`);
      const binding = createBinding(context, session, names, () => bindings.delete(binding));
      bindings.add(binding);
      return binding;
    },
    close() {
      if (!open) return;
      open = false;
      for (const binding of bindings) binding.close();
      strike(session);
      release();
    },
  };
}

function createSession(
  context: Context,
  graphFile: string,
  options: SessionOptions,
): { session: Handle; weightsDone: (() => void) | undefined } {
  const { api, env, library } = context;
  const handle = api.createSessionOptions();
  let weights: UsedWeights | null = null;
  try {
    api.setGraphOptimization(handle, OPTIMIZE_ALL);
    api.setThreads(handle, options.threads);
    for (const [key, value] of Object.entries(sessionEntries(options)))
      api.addConfigEntry(handle, key, value);
    if (options.weights) weights = useWeights(context, handle, options.weights);
    const session = library.flushingDenormals(() =>
      weights === null
        ? api.createSession(env, graphFile, handle)
        : api.createSessionWithPrepackedWeights(env, graphFile, handle, weights.prepacked),
    );
    weights?.packed();
    return { session, weightsDone: weights?.done };
  } catch (cause) {
    weights?.done();
    throw new RuntimeError(`graph ${graphFile}: ${(cause as Error).message}`, { cause });
  } finally {
    api.releaseSessionOptions(handle);
    library.trimMemory();
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
