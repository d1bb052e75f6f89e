// Drives a step graph the way an engine does: one pool of keys and values, updated in place.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AdapterLayout, EngineGraphs } from '../../../src/model/index.js';
import { allocate, type Binding, openRuntime, type TensorView } from '../../../src/runtime/index.js';

const KINDS = ['key', 'value'] as const;

const folders: string[] = [];

afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A folder that goes when the test file ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'searchloop-model-'));
  folders.push(folder);
  return folder;
}

export interface StepResult {
  /** One row for each selected position. */
  readonly logits: readonly Float32Array[];
  readonly logsumexp: Float32Array;
  readonly hidden: readonly Float32Array[];
}

export interface StepRunner {
  /**
   * Runs one step: `rows` of new token ids for the first rows of the pool, padded on the right to the longest.
   * All new positions are selected unless `selected` names some of the flattened ones.
   */
  step(rows: readonly (readonly number[])[], options?: StepOptions): Promise<StepResult>;
  /** Forgets all rows. */
  reset(): void;
  /** Keys and values of a layer as they lie in the pool: [rows, kvHeads, capacity, headDim]. */
  cache(layer: number, kind: 'key' | 'value'): Float32Array | Int8Array;
  close(): void;
}

export interface StepOptions {
  readonly selected?: readonly number[];
  /** Rows of the pool that the step starts at. */
  readonly firstRow?: number;
  /** Adapters, and which of them each row uses. */
  readonly adapters?: { readonly layout: AdapterLayout; readonly rows: readonly (number | null)[] };
}

export interface RunnerOptions {
  readonly rows?: number;
  readonly capacity?: number;
  readonly adapters?: boolean;
  readonly threads?: number;
  /** An int8 cache, with the steps of keys and values of each layer. */
  readonly int8Steps?: readonly { readonly key: Float32Array; readonly value: Float32Array }[];
}

export async function openSteps(graphs: EngineGraphs, options: RunnerOptions = {}): Promise<StepRunner> {
  const { rows: poolRows = 4, capacity = 64 } = options;
  const runtime = await openRuntime();
  const { int8Steps } = options;
  const files = int8Steps ? graphs.int8Cache! : graphs;
  const file = options.adapters ? files.adapterStepFile : files.stepFile;
  const session = await runtime.openSession(file, { threads: options.threads ?? 2, spinning: false });
  const { kvHeads, headDim, layers, vocabSize, hiddenSize } = graphs.config;
  const slot = kvHeads * capacity * headDim;
  const caches = Array.from({ length: layers }, () =>
    KINDS.map(() => (int8Steps ? new Int8Array(poolRows * slot) : new Float32Array(poolRows * slot))),
  );
  const lengths = new Array<number>(poolRows).fill(0);
  const bindCaches = (binding: Binding, firstRow: number, batch: number): void => {
    for (const [layer, pair] of caches.entries())
      for (const [at, kind] of KINDS.entries()) {
        const data = pair[at]!.subarray(firstRow * slot, (firstRow + batch) * slot);
        const type = int8Steps ? 'int8' : 'float32';
        const view: TensorView = { type, shape: [batch, kvHeads, capacity, headDim], data };
        binding.bindInput(`past_${kind}.${layer}`, view);
        binding.bindOutput(`present_${kind}.${layer}`, view);
        const steps = int8Steps?.[layer]?.[kind];
        if (steps !== undefined)
          binding.bindInput(`${kind}_step.${layer}`, { type: 'float32', shape: [steps.length], data: steps });
      }
  };
  return {
    async step(rows, { selected, firstRow = 0, adapters } = {}) {
      const width = Math.max(...rows.map((row) => row.length));
      const batch = rows.length;
      const ids = rows.flatMap((row) => [...row, ...new Array<number>(width - row.length).fill(0)]);
      for (const [index, row] of rows.entries()) lengths[firstRow + index]! += row.length;
      const now = lengths.slice(firstRow, firstRow + batch);
      const wanted = selected ?? rows.flatMap((row, index) => row.map((_, at) => index * width + at));
      const outputs = {
        logits: allocate('float32', [wanted.length, vocabSize]),
        logsumexp: allocate('float32', [wanted.length]),
        hidden: allocate('float32', [wanted.length, hiddenSize]),
      };
      const binding = session.createBinding();
      try {
        binding.bindInput('input_ids', int64(ids, [batch, width]));
        binding.bindInput('seqlens_k', int32(now.map((length) => length - 1)));
        binding.bindInput('total_sequence_length', int32([Math.max(...now)]));
        binding.bindInput('selected_rows', int64(wanted, [wanted.length]));
        bindCaches(binding, firstRow, batch);
        const bound = adapters && { ...adapters.layout.inputs, ...adapters.layout.masks(adapters.rows) };
        for (const [name, view] of Object.entries(bound ?? {})) binding.bindInput(name, view);
        for (const [name, view] of Object.entries(outputs)) binding.bindOutput(name, view);
        await binding.run();
      } finally {
        binding.close();
      }
      return {
        logits: rowsOf(outputs.logits),
        logsumexp: outputs.logsumexp.data as Float32Array,
        hidden: rowsOf(outputs.hidden),
      };
    },
    reset: () => lengths.fill(0),
    cache: (layer, kind) => caches[layer]![KINDS.indexOf(kind)]!,
    close: () => session.close(),
  };
}

const int64 = (values: readonly number[], shape: readonly number[]): TensorView => ({
  type: 'int64',
  shape,
  data: BigInt64Array.from(values, BigInt),
});

const int32 = (values: readonly number[]): TensorView => ({
  type: 'int32',
  shape: [values.length],
  data: Int32Array.from(values),
});

/** Rows of f32 [rows, width]. */
function rowsOf({ data, shape }: TensorView): Float32Array[] {
  const [count = 0, width = 0] = shape;
  return Array.from({ length: count }, (_, row) =>
    (data as Float32Array).subarray(row * width, (row + 1) * width),
  );
}
