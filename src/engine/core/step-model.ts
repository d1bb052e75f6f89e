// Runs the step graph over the slots of a KV pool: a chunk of one prompt, or one token for each slot of a window. The
// logits stay where the graph left them.

import type { AdapterLayout, EngineGraphs } from '../../model/index.js';
import type { InferenceSession, OnnxRuntime, SessionOptions } from '../../runtime/index.js';
import { createKvMemory, type KvMemory } from '../pool/kv-memory.js';
import { type RowAdapters, StepBinding } from './step-binding.js';

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

/** Bindings kept; each holds a few hundred small native objects. */
const MOST_BINDINGS = 64;

/** Opens the graph without adapters. The one with adapters is opened when it is first needed. */
export async function openStepModel(runtime: OnnxRuntime, options: StepModelOptions): Promise<StepModel> {
  const { threads, spinning, graphs } = options;
  const plain = await runtime.openSession(graphs.stepFile, { threads, spinning });
  return new StepModel(runtime, options, plain, { threads, spinning });
}

export class StepModel {
  readonly memory: KvMemory;
  /** Row i belongs to the i-th wanted row of the last run: f32 [N, V]. */
  readonly logits: Float32Array;
  /** f32 [N] */
  readonly logSumExp: Float32Array;
  readonly vocabSize: number;
  #adapted: InferenceSession | null = null;
  /** Least recently used first. */
  readonly #bindings = new Map<number, StepBinding>();

  constructor(
    private readonly runtime: OnnxRuntime,
    private readonly options: StepModelOptions,
    private readonly plain: InferenceSession,
    private readonly sessionOptions: SessionOptions,
  ) {
    const { graphs, slots, capacity } = options;
    const { layers, kvHeads, headDim, vocabSize } = graphs.config;
    this.memory = createKvMemory({ layers, kvHeads, headDim, slots, capacity });
    this.vocabSize = vocabSize;
    this.logits = new Float32Array(slots * vocabSize);
    this.logSumExp = new Float32Array(slots);
  }

  /** Reads `count` tokens from `from` on into a slot that holds `past` positions; leaves the logits of the last. */
  async prefill(
    slot: number,
    tokens: Int32Array,
    from: number,
    count: number,
    past: number,
    layout: AdapterLayout | null,
  ): Promise<void> {
    const step = this.#binding(slot, 1, true, layout === null ? this.plain : await this.#openAdapted());
    step.setWidth(count);
    for (let i = 0; i < count; i++) step.ids[2 * i] = tokens[from + i] as number;
    step.seqlens[0] = past + count - 1;
    step.totalLength[0] = past + count;
    step.select([count - 1]);
    if (layout !== null) step.adapt({ layout, rows: [0] });
    await step.run();
  }

  /**
   * One token for each of `count` slots from `first` on: `tokens[i]` goes to position `pastLengths[i]`.
   *
   * @param rows rows of the window whose logits are wanted, in order
   */
  async decode(
    first: number,
    count: number,
    tokens: Int32Array,
    pastLengths: Int32Array,
    rows: readonly number[],
    adapters: RowAdapters | null,
  ): Promise<void> {
    const session = adapters === null ? this.plain : await this.#openAdapted();
    const step = this.#binding(first, count, false, session);
    let longest = 0;
    for (let row = 0; row < count; row++) {
      const past = pastLengths[row] as number;
      step.ids[2 * row] = tokens[row] as number;
      step.seqlens[row] = past;
      if (past > longest) longest = past;
    }
    step.totalLength[0] = longest + 1;
    step.setWidth(1);
    step.select(rows);
    if (adapters !== null) step.adapt(adapters);
    await step.run();
  }

  /** Opens the graph with adapters, so that the first run with one does not wait for it. */
  async prepareAdapters(): Promise<void> {
    await this.#openAdapted();
  }

  /** Lets go of all bound adapter weights. */
  releaseAdapters(): void {
    for (const [key, binding] of this.#bindings) {
      if ((key & 1) === 0) continue;
      binding.close();
      this.#bindings.delete(key);
    }
  }

  close(): void {
    for (const binding of this.#bindings.values()) binding.close();
    this.#bindings.clear();
    this.plain.close();
    this.#adapted?.close();
  }

  async #openAdapted(): Promise<InferenceSession> {
    const { adapterStepFile } = this.options.graphs;
    this.#adapted ??= await this.runtime.openSession(adapterStepFile, this.sessionOptions);
    return this.#adapted;
  }

  #binding(first: number, count: number, prefill: boolean, session: InferenceSession): StepBinding {
    const { slots, chunkTokens } = this.options;
    const adapted = session === this.plain ? 0 : 1;
    const key = 4 * (first * (slots + 1) + count) + (prefill ? 2 : 0) + adapted;
    const bindings = this.#bindings;
    let found = bindings.get(key);
    if (found === undefined) {
      if (bindings.size >= MOST_BINDINGS) this.#closeOldest();
      found = new StepBinding(session, this.#stepMemory, first, count, prefill ? chunkTokens : 1);
      bindings.set(key, found);
    } else if (bindings.size > MOST_BINDINGS / 2) {
      bindings.delete(key);
      bindings.set(key, found);
    }
    return found;
  }

  get #stepMemory() {
    return { kv: this.memory, vocabSize: this.vocabSize, logits: this.logits, logSumExp: this.logSumExp };
  }

  #closeOldest(): void {
    const [key, oldest] = this.#bindings.entries().next().value as [number, StepBinding];
    this.#bindings.delete(key);
    oldest.close();
  }
}
