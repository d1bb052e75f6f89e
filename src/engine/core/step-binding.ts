// Inputs and outputs of the step graph for one window of slots, bound once. What stays the same from run to run (keys,
// values, adapters, selected rows) costs nothing; the integers are written in place.

import type { AdapterLayout } from '../../model/index.js';
import type { Binding, InferenceSession, TensorView } from '../../runtime/index.js';
import type { KvMemory } from '../pool/kv-memory.js';

/** Adapters of a run: their layout, and for each row of the window an index into it, null for the base model. */
export interface RowAdapters {
  readonly layout: AdapterLayout;
  readonly rows: readonly (number | null)[];
}

/** For each buffer of an int8 cache f32 [kvHeads * headDim]: what 1 is worth in each channel. */
export type CacheSteps = readonly Float32Array[];

/** Where every run leaves what it found. */
export interface StepResults {
  readonly vocabSize: number;
  /** f32 [most rows, V] */
  readonly logits: Float32Array;
  /** f32 [most rows] */
  readonly logSumExp: Float32Array;
}

/** Memory that bindings share. */
export interface StepMemory extends StepResults {
  readonly kv: KvMemory;
  /** Null for a float32 cache. */
  readonly steps: CacheSteps | null;
}

export class StepBinding {
  /** int64 ids seen as pairs of int32, low word first: written without making a BigInt each. */
  readonly ids: Int32Array;
  /** Tokens of each row after the step, minus 1. */
  readonly seqlens: Int32Array;
  readonly totalLength = new Int32Array(1);
  readonly #binding: Binding;
  readonly #idData: BigInt64Array;
  readonly #selectData: BigInt64Array;
  readonly #selectWords: Int32Array;
  #width = 0;
  #rows: readonly number[] | null = null;
  #rowCount = 0;
  #adapters: RowAdapters | null = null;

  /** @param mostWidth most columns of `input_ids` */
  constructor(
    session: InferenceSession,
    private readonly memory: StepMemory,
    first: number,
    private readonly count: number,
    mostWidth: number,
  ) {
    this.#binding = session.createBinding();
    this.#idData = new BigInt64Array(count * mostWidth);
    this.ids = new Int32Array(this.#idData.buffer);
    this.#selectData = new BigInt64Array(count);
    this.#selectWords = new Int32Array(this.#selectData.buffer);
    this.seqlens = new Int32Array(count);
    this.#binding.bindInput('seqlens_k', { type: 'int32', shape: [count], data: this.seqlens });
    this.#binding.bindInput('total_sequence_length', { type: 'int32', shape: [1], data: this.totalLength });
    for (const [index, view] of memory.kv.views(first, count).entries()) {
      const kind = index % 2 === 0 ? 'key' : 'value';
      const layer = index >> 1;
      this.#binding.bindInput(`past_${kind}.${layer}`, view);
      this.#binding.bindOutput(`present_${kind}.${layer}`, view);
      const step = memory.steps?.[index];
      if (step !== undefined)
        this.#binding.bindInput(`${kind}_step.${layer}`, {
          type: 'float32',
          shape: [step.length],
          data: step,
        });
    }
  }

  /** Columns of `input_ids`. */
  setWidth(width: number): void {
    if (width === this.#width) return;
    this.#width = width;
    this.#binding.bindInput('input_ids', { type: 'int64', shape: [this.count, width], data: this.#idData });
  }

  /** The next `count` tokens after `past` positions of the only row; of the last the logits are wanted. */
  read(tokens: ArrayLike<number>, past: number, count: number): void {
    this.setWidth(count);
    for (let i = 0; i < count; i++) this.ids[2 * i] = tokens[past + i] as number;
    this.seqlens[0] = past + count - 1;
    this.totalLength[0] = past + count;
    this.select([count - 1]);
  }

  /** Flattened positions whose logits are wanted. The same array (by identity) as the last time costs nothing. */
  select(rows: readonly number[]): void {
    if (rows === this.#rows) return;
    this.#rows = rows;
    for (let i = 0; i < rows.length; i++) this.#selectWords[2 * i] = rows[i] as number;
    if (rows.length === this.#rowCount) return;
    this.#rowCount = rows.length;
    const { vocabSize, logits, logSumExp } = this.memory;
    const shape = [rows.length];
    this.#binding.bindInput('selected_rows', { type: 'int64', shape, data: this.#selectData });
    this.#binding.bindOutput('logits', { type: 'float32', shape: [rows.length, vocabSize], data: logits });
    this.#binding.bindOutput('logsumexp', { type: 'float32', shape, data: logSumExp });
  }

  /** The same object as the last time costs nothing, another one over the same layout only its masks. */
  adapt(adapters: RowAdapters): void {
    if (adapters === this.#adapters) return;
    const { layout, rows } = adapters;
    if (this.#adapters?.layout !== layout) bindAll(this.#binding, layout.inputs);
    bindAll(this.#binding, layout.masks(rows));
    this.#adapters = adapters;
  }

  /** Of the last run; null before it, and without adapters. */
  get layout(): AdapterLayout | null {
    return this.#adapters?.layout ?? null;
  }

  run(): Promise<void> {
    return this.#binding.run();
  }

  close(): void {
    this.#binding.close();
  }
}

function bindAll(binding: Binding, views: Readonly<Record<string, TensorView>>): void {
  for (const name in views) binding.bindInput(name, views[name] as TensorView);
}
