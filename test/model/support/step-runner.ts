// Drives a step graph the way an engine does: one pool of keys and values, updated in place.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AdapterLayout, EngineGraphs } from '../../../src/model/index.js';
import { allocate, openRuntime, type TensorView } from '../../../src/runtime/index.js';

export const temporaryFolder = (): string => mkdtempSync(join(tmpdir(), 'searchloop-model-'));

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
  /** Forgets the first `rows` rows. */
  reset(): void;
  close(): void;
}

export interface StepOptions {
  readonly selected?: readonly number[];
  /** Rows of the pool that the step starts at. */
  readonly firstRow?: number;
  /** Adapters, and which of them each row uses. */
  readonly adapters?: { readonly layout: AdapterLayout; readonly rows: readonly (number | null)[] };
}

export async function openSteps(
  graphs: EngineGraphs,
  options: { rows?: number; capacity?: number; adapters?: boolean; threads?: number } = {},
): Promise<StepRunner> {
  const { rows: poolRows = 4, capacity = 64 } = options;
  const runtime = await openRuntime();
  const file = options.adapters ? graphs.adapterStepFile : graphs.stepFile;
  const session = await runtime.openSession(file, { threads: options.threads ?? 2, spinning: false });
  const { kvHeads, headDim, layers, vocabSize, hiddenSize } = graphs.config;
  const slot = kvHeads * capacity * headDim;
  const caches = Array.from({ length: layers }, () =>
    ['key', 'value'].map(() => new Float32Array(poolRows * slot)),
  );
  const lengths = new Array<number>(poolRows).fill(0);
  return {
    async step(rows, { selected, firstRow = 0, adapters } = {}) {
      const width = Math.max(...rows.map((row) => row.length));
      const batch = rows.length;
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
        for (const [layer, pair] of caches.entries())
          for (const [at, kind] of ['key', 'value'].entries()) {
            const data = pair[at]!.subarray(firstRow * slot, (firstRow + batch) * slot);
            const view: TensorView = { type: 'float32', shape: [batch, kvHeads, capacity, headDim], data };
            binding.bindInput(`past_${kind}.${layer}`, view);
            binding.bindOutput(`present_${kind}.${layer}`, view);
          }
        const bound = adapters && { ...adapters.layout.inputs, ...adapters.layout.masks(adapters.rows) };
        for (const [name, view] of Object.entries(bound ?? {})) binding.bindInput(name, view);
        for (const [name, view] of Object.entries(outputs)) binding.bindOutput(name, view);
        await binding.run();
      } finally {
        binding.close();
      }
      const split = (view: TensorView): Float32Array[] => {
        const data = view.data as Float32Array;
        const size = data.length / wanted.length;
        return wanted.map((_, index) => data.subarray(index * size, (index + 1) * size));
      };
      return {
        logits: split(outputs.logits),
        logsumexp: outputs.logsumexp.data as Float32Array,
        hidden: split(outputs.hidden),
      };
    },
    reset: () => lengths.fill(0),
    close: () => session.close(),
  };
}
