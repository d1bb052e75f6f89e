// Runs the step graph over the slots of a KV pool: a chunk of one prompt, or one token for each slot of a window. The
// logits stay where the graph left them.
//
// Narrow steps want little memory to be read: weights in blocks. Wide ones, chunks of prompts and decode steps of many
// rows, want fast products: where there are `wideSteps` their float32 layers. Keys and values are in 8 bits; prompts are
// read in a float32 slot, and theirs are then rounded into the pool. `fp32` knows one graph and one memory for all.

import type { AdapterLayout, EngineGraphs, StepFiles } from '../../model/index.js';
import type { OnnxRuntime, SharedWeights } from '../../runtime/index.js';
import { createFloatMemory, createInt8Memory, type KvMemory } from '../pool/kv-memory.js';
import { type Staged, Staging } from '../pool/staging.js';
import { measureCacheSteps } from './cache-calibration.js';
import type { CacheSteps, RowAdapters, StepResults } from './step-binding.js';
import { StepSessions } from './step-sessions.js';

export interface StepModelOptions {
  readonly graphs: EngineGraphs;
  readonly slots: number;
  /** Positions of one slot. */
  readonly capacity: number;
  /** Most tokens of one prefill run. */
  readonly chunkTokens: number;
  readonly threads: number;
  readonly spinning: boolean;
  /** Token ids of typical texts: an int8 cache takes the reach of its channels from them. */
  readonly samples: readonly (readonly number[])[];
}

/** A sequence whose prompt is read. */
export interface Reader extends Staged {
  readonly slot: number;
  readonly tokens: Int32Array;
}

/**
 * From this many tokens of a prompt or rows of a decode step on a step is a wide one. Below it the blocks are faster (at 8
 * rows by a tenth on AVX2) or as fast, and a prompt need not be staged.
 */
export const LEAST_WIDE = 16;

interface Parts {
  readonly memory: KvMemory;
  /** Over `memory`. */
  readonly narrow: StepSessions;
  /** Over the staging slot, or over `memory` where there is none. Null: the narrow ones read prompts too. */
  readonly wide: StepSessions | null;
  /** Over `memory`, for decode steps of many rows. Null: the narrow ones decode those too. */
  readonly wideDecode: StepSessions | null;
  /** Null for a float32 cache. */
  readonly staging: Staging | null;
  readonly results: StepResults;
}

/** Opens the sessions; where the cache is int8, runs the samples once. */
export async function openStepModel(runtime: OnnxRuntime, options: StepModelOptions): Promise<StepModel> {
  const { graphs, slots, capacity, threads, spinning, chunkTokens } = options;
  const { layers, kvHeads, headDim, vocabSize } = graphs.config;
  const shape = { layers, kvHeads, headDim, slots, capacity };
  const results = {
    vocabSize,
    logits: new Float32Array(slots * vocabSize),
    logSumExp: new Float32Array(slots),
  };
  const { int8Cache, wideSteps } = graphs;
  const weights = runtime.openWeights(graphs.weightsFile, graphs.weightsTensors);
  const wideWeights =
    wideSteps === null ? weights : runtime.openWeights(wideSteps.weightsFile, wideSteps.weightsTensors);
  const session = { threads, spinning, weights };
  const opened: StepSessions[] = [];
  const open = async (files: StepFiles, shared: SharedWeights, kv: KvMemory, steps: CacheSteps | null) => {
    const memory = { kv, steps, ...results };
    const sessions = await StepSessions.open(
      runtime,
      files,
      { ...session, weights: shared },
      memory,
      chunkTokens,
    );
    opened.push(sessions);
    return sessions;
  };
  try {
    if (int8Cache === null) {
      const memory = createFloatMemory(shape);
      const narrow = await open(graphs, weights, memory, null);
      const wide = wideSteps === null ? null : await open(wideSteps, wideWeights, memory, null);
      return new StepModel({ memory, results, narrow, wide, wideDecode: wide, staging: null });
    }
    const memory = createInt8Memory(shape);
    const slot = createFloatMemory({ ...shape, slots: 1 });
    const wide = await open(wideSteps ?? graphs, wideWeights, slot, null);
    const steps = await measureCacheSteps(wide, slot, options.samples);
    const staging = new Staging(memory, slot, steps);
    const narrow = await open(int8Cache, weights, memory, steps);
    const wideDecode =
      wideSteps === null || slots < LEAST_WIDE
        ? null
        : await open(wideSteps.int8Cache, wideWeights, memory, steps);
    return new StepModel({ memory, results, narrow, wide, wideDecode, staging });
  } catch (error) {
    for (const sessions of opened) sessions.close();
    throw error;
  } finally {
    // The sessions hold them from here on.
    weights.close();
    wideWeights.close();
  }
}

export class StepModel {
  readonly memory: KvMemory;
  /** Row i belongs to the i-th wanted row of the last run: f32 [N, V]. */
  readonly logits: Float32Array;
  /** f32 [N] */
  readonly logSumExp: Float32Array;
  readonly vocabSize: number;
  readonly #all: ReadonlySet<StepSessions>;

  constructor(private readonly parts: Parts) {
    this.memory = parts.memory;
    this.vocabSize = parts.results.vocabSize;
    this.logits = parts.results.logits;
    this.logSumExp = parts.results.logSumExp;
    const { narrow, wide, wideDecode } = parts;
    this.#all = new Set([narrow, wide, wideDecode].filter((sessions) => sessions !== null));
  }

  /** Reads `count` tokens of a sequence after the `past` positions that its slot holds; leaves the logits of the last. */
  async prefill(reader: Reader, past: number, count: number, layout: AdapterLayout | null): Promise<void> {
    const { narrow, wide, staging } = this.parts;
    const { slot, tokens } = reader;
    const sessions = wide === null || count < LEAST_WIDE ? narrow : wide;
    const staged = sessions === wide ? staging : null;
    staged?.load(reader, slot, past);
    const step = sessions.binding(staged === null ? slot : 0, 1, 'many', layout !== null);
    step.read(tokens, past, count);
    if (layout !== null) step.adapt({ layout, rows: [0] });
    await step.run();
    staged?.store(reader, slot, past, count);
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
    const { narrow, wideDecode } = this.parts;
    const sessions = count < LEAST_WIDE ? narrow : (wideDecode ?? narrow);
    const step = sessions.binding(first, count, 'one', adapters !== null);
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

  /** Lets go of bound adapter weights but for these. */
  releaseAdapters(kept: ReadonlySet<AdapterLayout>): void {
    for (const sessions of this.#all) sessions.releaseAdapters(kept);
  }

  close(): void {
    for (const sessions of this.#all) sessions.close();
  }
}
