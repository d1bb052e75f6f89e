// Chooses how onnxruntime is reached: its C API, or onnxruntime-node's own binding where that fails.

import type { OnnxRuntime } from './session.js';

export type RuntimeKind = OnnxRuntime['kind'];

const opened = new Map<RuntimeKind, Promise<OnnxRuntime>>();

/**
 * The runtime of this thread. Without `kind` the C API is tried first and the binding stands in for it.
 * @throws when the asked kind, or both, cannot be loaded
 */
export function openRuntime(kind?: RuntimeKind): Promise<OnnxRuntime> {
  return kind === undefined ? openKind('c-api').catch(() => openKind('binding')) : openKind(kind);
}

function openKind(kind: RuntimeKind): Promise<OnnxRuntime> {
  const runtime = opened.get(kind) ?? load(kind);
  opened.set(kind, runtime);
  return runtime;
}

/** Neither is loaded before it is needed. */
async function load(kind: RuntimeKind): Promise<OnnxRuntime> {
  if (kind === 'c-api') return (await import('./ort/c-api.js')).openNativeRuntime();
  return (await import('./ort/fallback.js')).openBindingRuntime();
}
