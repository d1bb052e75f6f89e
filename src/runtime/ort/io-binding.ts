// Inputs and outputs of one session, bound once and run often.

import { RuntimeError } from '../../errors.js';
import type { Binding, TensorView } from '../session.js';
import type { Handle } from './api.js';
import type { Context } from './context.js';
import { type BindingNames, checkName, checkView, elementCode, tensorBytes } from './element-type.js';
import { runOn } from './runner.js';
import { closeTerminateHandle, createTerminateHandle, requestTerminate, terminable } from './terminate.js';

/** Memory for tensors without elements: onnxruntime wants an address all the same. */
const NOTHING = new Uint8Array(new ArrayBuffer(8));

/** A tensor over a view's memory. Whoever makes it keeps the array referenced and releases the handle. */
function createTensor({ api, library, memory }: Context, name: string, view: TensorView): Handle {
  checkView(name, view);
  const bytes = tensorBytes(view.type, view.shape);
  return api.createTensor(
    memory,
    library.address(bytes === 0 ? NOTHING : view.data),
    bytes,
    BigInt64Array.from(view.shape, BigInt),
    view.shape.length,
    elementCode(view.type),
  );
}

/** @param names  the session's inputs and outputs */
export function createBinding(
  context: Context,
  session: Handle,
  names: BindingNames,
  onClose: () => void,
): Binding {
  const { api, library } = context;
  const binding = api.createBinding(session);
  const terminateHandle = createTerminateHandle(api.createRunOptions());
  /** Bound values by side and name. The arrays are held here so that their memory stays. */
  const bound = new Map<string, { value: Handle; view: TensorView; byteLength: number }>();
  let open = true;

  function bind(side: 'input' | 'output', name: string, view: TensorView): void {
    if (!open) throw new RuntimeError(`binding is closed, cannot bind "${name}"`);
    // onnxruntime's own check comes too late: it leaves the binding broken.
    checkName(names, side, name);
    const value = createTensor(context, name, view);
    try {
      (side === 'input' ? api.bindInput : api.bindOutput)(binding, name, value);
    } catch (error) {
      api.releaseValue(value);
      throw error;
    }
    const key = `${side}:${name}`;
    const previous = bound.get(key);
    bound.set(key, { value, view, byteLength: view.data.byteLength });
    if (previous) api.releaseValue(previous.value);
  }

  /** An array whose buffer was moved to another thread lost its memory, which the tensor still points to. */
  function checkMemory(): void {
    for (const [key, { view, byteLength }] of bound)
      if (view.data.byteLength !== byteLength)
        throw new RuntimeError(`${key}: its buffer was moved to another thread or resized while bound`);
  }

  return {
    terminateHandle,
    bindInput: (name, view) => bind('input', name, view),
    bindOutput: (name, view) => bind('output', name, view),
    async run(runner) {
      if (!open) throw new RuntimeError('binding is closed, cannot run');
      checkMemory();
      const { runOptions } = terminateHandle;
      await terminable(terminateHandle, api, () =>
        runner === undefined
          ? library.flushingDenormals(() => api.runWithBinding(session, runOptions, binding))
          : runOn(runner, { session, runOptions, binding }),
      );
    },
    terminate: () => requestTerminate(terminateHandle, api),
    close() {
      if (!open) return;
      open = false;
      api.releaseBinding(binding);
      closeTerminateHandle(terminateHandle, () => api.releaseRunOptions(terminateHandle.runOptions));
      for (const { value } of bound.values()) api.releaseValue(value);
      bound.clear();
      onClose();
    },
  };
}
