// What `doctor` says about this room.

import { readFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { openContext } from './ort/context.js';
import { openRuntime, type RuntimeKind } from './runtime.js';

/** Instruction sets that onnxruntime's kernels choose by, as the Linux kernel spells them. */
const FEATURES = [
  'sse4_1',
  'avx',
  'avx2',
  'fma',
  'f16c',
  'avx512f',
  'avx512_vnni',
  'avx512_bf16',
  'avx_vnni',
  'amx_int8',
  'asimd',
  'asimddp',
  'fphp',
  'i8mm',
  'sve',
];

export interface RuntimeReport {
  /** How onnxruntime is reached; `binding` is the slower fallback. */
  readonly kind: RuntimeKind;
  readonly onnxruntimeVersion: string;
  /** Shared library in use; null with the fallback. */
  readonly libraryPath: string | null;
  readonly koffiVersion: string | null;
  /** Why the C API is not used; null when it is. */
  readonly fallbackReason: string | null;
  readonly cpuModel: string;
  /** Instruction sets that matter here; null where the system does not tell. */
  readonly cpuFeatures: readonly string[] | null;
  /** Threads that this process may use at once. */
  readonly threads: number;
}

/** @throws when onnxruntime cannot be reached in either way */
export async function runtimeReport(): Promise<RuntimeReport> {
  const { library, reason } = await openContext().then(
    ({ library }) => ({ library, reason: null }),
    (error: Error) => ({ library: null, reason: error.message }),
  );
  const runtime = await openRuntime();
  return {
    kind: runtime.kind,
    onnxruntimeVersion: runtime.version,
    libraryPath: library?.path ?? null,
    koffiVersion: library?.koffiVersion ?? null,
    fallbackReason: reason,
    cpuModel: cpus()[0]?.model.trim() ?? 'unknown',
    cpuFeatures: cpuFeatures(),
    threads: availableParallelism(),
  };
}

/** Those of {@link FEATURES} that the processor has; null where the system does not tell. */
export function cpuFeatures(): string[] | null {
  try {
    const line = /^(?:flags|Features)\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1];
    if (line === undefined) return null;
    const all = new Set(line.trim().split(/\s+/));
    return FEATURES.filter((feature) => all.has(feature));
  } catch {
    return null;
  }
}
