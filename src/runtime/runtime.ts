// Chooses how onnxruntime is reached: its C API, or onnxruntime-node's own binding where that fails.

import type { OnnxRuntime } from './session.js';

export type RuntimeKind = OnnxRuntime['kind'];

let opened: Promise<OnnxRuntime> | null = null;

/**
 * The runtime of this thread. Without `kind` the C API is tried first and the binding stands in for it.
 * @throws when the asked kind, or both, cannot be loaded
 */
export function openRuntime(kind?: RuntimeKind): Promise<OnnxRuntime> {
  if (kind !== undefined) return openKind(kind);
  opened ??= openKind('c-api').catch(() => openKind('binding'));
  return opened;
}

async function openKind(kind: RuntimeKind): Promise<OnnxRuntime> {
  // Neither is loaded before it is needed.
  if (kind === 'c-api') return (await import('./ort/c-api.js')).openNativeRuntime();
  return (await import('./ort/binding.js')).openBindingRuntime();
}
