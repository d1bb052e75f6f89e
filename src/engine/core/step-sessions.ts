// The step graph with and without adapters over one memory, and bindings for the windows that were used lately.

import type { AdapterLayout, StepFiles } from '../../model/index.js';
import type { InferenceSession, OnnxRuntime, SessionOptions } from '../../runtime/index.js';
import { StepBinding, type StepMemory } from './step-binding.js';

/** Bindings kept; each holds a few hundred small native objects. */
const MOST_BINDINGS = 64;

export class StepSessions {
  /** Least recently used first. */
  readonly #bindings = new Map<number, StepBinding>();

  private constructor(
    private readonly plain: InferenceSession,
    private readonly adapted: InferenceSession,
    private readonly memory: StepMemory,
    private readonly mostWidth: number,
  ) {}

  /**
   * @param options   with shared weights the second session costs little, and no first adapter waits for it
   * @param mostWidth most tokens of one row
   */
  static async open(
    runtime: OnnxRuntime,
    files: StepFiles,
    options: SessionOptions,
    memory: StepMemory,
    mostWidth: number,
  ): Promise<StepSessions> {
    const plain = await runtime.openSession(files.stepFile, options);
    const adapted = await runtime.openSession(files.adapterStepFile, options).catch((error: unknown) => {
      plain.close();
      throw error;
    });
    return new StepSessions(plain, adapted, memory, mostWidth);
  }

  /** @param width whether steps are one token a row, or up to `mostWidth` */
  binding(first: number, count: number, width: 'one' | 'many', adapted: boolean): StepBinding {
    const { slots } = this.memory.kv.shape;
    const key = 4 * (first * (slots + 1) + count) + (width === 'many' ? 2 : 0) + (adapted ? 1 : 0);
    const bindings = this.#bindings;
    let found = bindings.get(key);
    if (found === undefined) {
      if (bindings.size >= MOST_BINDINGS) this.#closeOldest();
      const session = adapted ? this.adapted : this.plain;
      found = new StepBinding(session, this.memory, first, count, width === 'many' ? this.mostWidth : 1);
      bindings.set(key, found);
    } else if (bindings.size > MOST_BINDINGS / 2) {
      bindings.delete(key);
      bindings.set(key, found);
    }
    return found;
  }

  /** Lets go of bound adapter weights but for these. Not within a run. */
  releaseAdapters(kept: ReadonlySet<AdapterLayout>): void {
    for (const [key, binding] of this.#bindings) {
      if (binding.layout === null || kept.has(binding.layout)) continue;
      binding.close();
      this.#bindings.delete(key);
    }
  }

  close(): void {
    for (const binding of this.#bindings.values()) binding.close();
    this.#bindings.clear();
    this.plain.close();
    this.adapted.close();
  }

  #closeOldest(): void {
    const [key, oldest] = this.#bindings.entries().next().value as [number, StepBinding];
    this.#bindings.delete(key);
    oldest.close();
  }
}
