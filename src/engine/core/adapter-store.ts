// Adapter versions that are resident in the worker, and their layouts side by side for the runs that need them.

import { InvalidInputError, NotFoundError } from '../../errors.js';
import {
  type Adapter,
  type AdapterLayout,
  type DecoderConfig,
  layOutAdapters,
  readAdapter,
} from '../../model/index.js';
import type { LoadedAdapter } from '../messages.js';

/**
 * Largest absolute value of an adapter's weights. In a mixed batch every row is multiplied with every adapter before the
 * mask takes away what is not its own; a product that overflowed would turn the mask's 0 into NaN, for other rows too.
 */
const LARGEST_WEIGHT = 1e6;

/** Layouts of several versions that are kept; a single version's own layout does not count. */
const MOST_COMBINATIONS = 4;

export class AdapterStore {
  readonly #adapters = new Map<string, Adapter>();
  readonly #single = new Map<string, AdapterLayout>();
  readonly #combined = new Map<string, AdapterLayout>();

  constructor(
    private readonly config: DecoderConfig,
    private readonly maxRank: number,
  ) {}

  /** Reads a PEFT folder. A version that is already here is not kept twice. */
  load(folder: string): LoadedAdapter {
    const adapter = readAdapter(folder, this.config, { maxRank: this.maxRank });
    checkSize(adapter, folder);
    if (!this.#adapters.has(adapter.digest)) {
      this.#adapters.set(adapter.digest, adapter);
      this.#single.set(adapter.digest, layOutAdapters(this.config, [adapter]));
    }
    return { version: adapter.digest, rank: adapter.rank };
  }

  drop(version: string): void {
    this.#adapters.delete(version);
    this.#single.delete(version);
    for (const key of this.#combined.keys()) if (key.split(' ').includes(version)) this.#combined.delete(key);
  }

  has(version: string): boolean {
    return this.#adapters.has(version);
  }

  /** Layout of the versions in this order. A single version brings only its own rank columns. */
  layout(versions: readonly string[]): AdapterLayout {
    const key = versions.join(' ');
    const found = this.#single.get(key) ?? this.#combined.get(key);
    if (found !== undefined) return found;
    const layout = layOutAdapters(
      this.config,
      versions.map((version) => this.#get(version)),
    );
    if (this.#combined.size >= MOST_COMBINATIONS)
      this.#combined.delete(this.#combined.keys().next().value as string);
    this.#combined.set(key, layout);
    return layout;
  }

  #get(version: string): Adapter {
    const adapter = this.#adapters.get(version);
    if (adapter === undefined) throw new NotFoundError(`adapter version ${version} is not loaded`);
    return adapter;
  }
}

function checkSize(adapter: Adapter, folder: string): void {
  for (const { layer, module, scale, a, b } of adapter.modules)
    for (const [side, values, factor] of [
      ['A', a, 1],
      ['B', b, scale],
    ] as const)
      for (const value of values)
        if (!(Math.abs(value * factor) <= LARGEST_WEIGHT))
          throw new InvalidInputError(
            `${folder}: lora_${side} of ${module} in layer ${layer} holds ${value} (scale ${factor}); at most ${LARGEST_WEIGHT} is accepted`,
          );
}
