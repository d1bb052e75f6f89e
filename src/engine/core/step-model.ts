// Runs the step graph over the slots of a KV pool. Everything that a step needs is bound once for its window of slots;
// a decode step then writes a few integers, runs, and reads the logits where the graph left them.

import type { AdapterLayout, EngineGraphs } from '../../model/index.js';
import type { Binding, InferenceSession, OnnxRuntime, TensorView } from '../../runtime/index.js';
import { createKvMemory, type KvMemory } from '../pool/kv-memory.js';

export interface StepModelOptions {
  readonly graphs: EngineGraphs;
  readonly slots: number;
  /** Positions of one slot. */
  readonly capacity: number;
  /** Most tokens of one prefill run. */
  readonly chunkTokens: number;
  readonly threads: number;
  readonly spinning: boolean;
}

/** Adapters of a run: their layout, and for each row of the window an index into it, null for the base model. */
export interface RowAdapters {
  readonly layout: AdapterLayout;
  readonly rows: readonly (number | null)[];
}

export interface StepModel {
  readonly memory: KvMemory;
  /** Row i belongs to the i-th wanted row of the last run: f32 [N, V]. */
  readonly logits: Float32Array;
  /** f32 [N] */
  readonly logSumExp: Float32Array;
  readonly vocabSize: number;
  /** Reads `count` tokens from `from` on into a slot that holds `past` positions; leaves the logits of the last. */
  prefill(
    slot: number,
    tokens: Int32Array,
    from: number,
    count: number,
    past: number,
    layout: AdapterLayout | null,
  ): Promise<void>;
  /**
   * One token for each of `count` slots from `first` on: `tokens[i]` goes to position `pastLengths[i]`.
   *
   * @param rows     rows of the window whose logits are wanted, in order. The same array (by identity) as the last time
   *                 costs nothing, and so do the same adapters
   */
  decode(
    first: number,
    count: number,
    tokens: Int32Array,
    pastLengths: Int32Array,
    rows: readonly number[],
    adapters: RowAdapters | null,
  ): Promise<void>;
  /** Opens the graph with adapters, so that the first run with one does not wait for it. */
  prepareAdapters(): Promise<void>;
  /** Lets go of all bound adapter weights. */
  releaseAdapters(): void;
  close(): void;
}

/** Bindings kept; each holds a few hundred small native objects. */
const MOST_BINDINGS = 64;

export async function openStepModel(runtime: OnnxRuntime, options: StepModelOptions): Promise<StepModel> {
  const { graphs, slots, capacity } = options;
  const { layers, kvHeads, headDim, vocabSize } = graphs.config;
  const memory = createKvMemory({ layers, kvHeads, headDim, slots, capacity });
  const sessionOptions = { threads: options.threads, spinning: options.spinning };
  const plain = await runtime.openSession(graphs.stepFile, sessionOptions);
  let adapted: InferenceSession | null = null;
  const openAdapted = async () =>
    (adapted ??= await runtime.openSession(graphs.adapterStepFile, sessionOptions));
  const logits = new Float32Array(slots * vocabSize);
  const logSumExp = new Float32Array(slots);
  const shared = { memory, vocabSize, logits, logSumExp };
  const bindings = new Map<number, StepBinding>();

  /** The binding of a window in the plain or the adapter graph, the least recently used one making room. */
  async function bindingOf(first: number, count: number, prefill: boolean, withAdapters: boolean) {
    const key = 4 * (first * (slots + 1) + count) + (prefill ? 2 : 0) + (withAdapters ? 1 : 0);
    const found = bindings.get(key);
    if (found !== undefined) {
      if (bindings.size > MOST_BINDINGS / 2) {
        bindings.delete(key);
        bindings.set(key, found);
      }
      return found;
    }
    if (bindings.size >= MOST_BINDINGS) {
      const [oldest, binding] = bindings.entries().next().value as [number, StepBinding];
      bindings.delete(oldest);
      binding.binding.close();
    }
    const session = withAdapters ? await openAdapted() : plain;
    const width = prefill ? options.chunkTokens : 1;
    const made = createStepBinding(session, shared, first, count, width);
    bindings.set(key, made);
    return made;
  }

  return {
    memory,
    logits,
    logSumExp,
    vocabSize,
    async prefill(slot, tokens, from, count, past, layout) {
      const step = await bindingOf(slot, 1, true, layout !== null);
      step.setWidth(count);
      for (let i = 0; i < count; i++) step.ids[2 * i] = tokens[from + i] as number;
      step.seqlens[0] = past + count - 1;
      step.totalLength[0] = past + count;
      step.select([count - 1]);
      if (layout !== null) step.adapt({ layout, rows: [0] });
      await step.binding.run();
    },
    async decode(first, count, tokens, pastLengths, rows, adapters) {
      const step = await bindingOf(first, count, false, adapters !== null);
      let longest = 0;
      for (let row = 0; row < count; row++) {
        const past = pastLengths[row] as number;
        step.ids[2 * row] = tokens[row] as number;
        step.seqlens[row] = past;
        if (past > longest) longest = past;
      }
      step.totalLength[0] = longest + 1;
      step.select(rows);
      if (adapters !== null) step.adapt(adapters);
      await step.binding.run();
    },
    async prepareAdapters() {
      await openAdapted();
    },
    releaseAdapters() {
      for (const [key, { binding }] of bindings) {
        if ((key & 1) === 0) continue;
        binding.close();
        bindings.delete(key);
      }
    },
    close() {
      for (const { binding } of bindings.values()) binding.close();
      bindings.clear();
      plain.close();
      adapted?.close();
    },
  };
}

interface Shared {
  readonly memory: KvMemory;
  readonly vocabSize: number;
  readonly logits: Float32Array;
  readonly logSumExp: Float32Array;
}

interface StepBinding {
  readonly binding: Binding;
  /** int64 ids seen as pairs of int32, low word first: ids are written without making a BigInt each. */
  readonly ids: Int32Array;
  readonly seqlens: Int32Array;
  readonly totalLength: Int32Array;
  /** Columns of `input_ids`. */
  setWidth(width: number): void;
  /** Flattened positions whose logits are wanted. */
  select(rows: readonly number[]): void;
  adapt(adapters: RowAdapters): void;
}

function createStepBinding(
  session: InferenceSession,
  { memory, vocabSize, logits, logSumExp }: Shared,
  first: number,
  count: number,
  mostWidth: number,
): StepBinding {
  const binding = session.createBinding();
  const idData = new BigInt64Array(count * mostWidth);
  const selectData = new BigInt64Array(count);
  const selectWords = new Int32Array(selectData.buffer);
  const seqlens = new Int32Array(count);
  const totalLength = new Int32Array(1);
  binding.bindInput('seqlens_k', { type: 'int32', shape: [count], data: seqlens });
  binding.bindInput('total_sequence_length', { type: 'int32', shape: [1], data: totalLength });
  memory.views(first, count).forEach((view, index) => {
    const name = `${index % 2 === 0 ? 'key' : 'value'}.${index >> 1}`;
    binding.bindInput(`past_${name}`, view);
    binding.bindOutput(`present_${name}`, view);
  });
  let boundWidth = 0;
  let boundRows: readonly number[] | null = null;
  let boundCount = 0;
  let boundAdapters: RowAdapters | null = null;

  return {
    binding,
    ids: new Int32Array(idData.buffer),
    seqlens,
    totalLength,
    setWidth(width) {
      if (width === boundWidth) return;
      boundWidth = width;
      binding.bindInput('input_ids', { type: 'int64', shape: [count, width], data: idData });
    },
    select(rows) {
      if (boundWidth === 0) this.setWidth(1);
      if (rows === boundRows) return;
      boundRows = rows;
      for (let i = 0; i < rows.length; i++) selectWords[2 * i] = rows[i] as number;
      if (rows.length === boundCount) return;
      boundCount = rows.length;
      const shape = [rows.length];
      binding.bindInput('selected_rows', { type: 'int64', shape, data: selectData });
      binding.bindOutput('logits', { type: 'float32', shape: [rows.length, vocabSize], data: logits });
      binding.bindOutput('logsumexp', { type: 'float32', shape, data: logSumExp });
    },
    adapt(adapters) {
      if (adapters === boundAdapters) return;
      const { layout, rows } = adapters;
      if (boundAdapters?.layout !== layout) bindAll(binding, layout.inputs);
      bindAll(binding, layout.masks(rows));
      boundAdapters = adapters;
    },
  };
}

function bindAll(binding: Binding, views: Readonly<Record<string, TensorView>>): void {
  for (const name in views) binding.bindInput(name, views[name] as TensorView);
}
