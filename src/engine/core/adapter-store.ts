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
const MOST_COMBINATIONS = 3;

/** Versions side by side. */
export interface Combination {
  readonly layout: AdapterLayout;
  /** Index of each version in the layout. */
  readonly places: ReadonlyMap<string, number>;
}

export class AdapterStore {
  readonly #adapters = new Map<string, Adapter>();
  readonly #single = new Map<string, Combination>();
  /** Most recently used last. */
  #combined: Combination[] = [];

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
      this.#single.set(adapter.digest, this.#combine([adapter]));
    }
    return { version: adapter.digest, rank: adapter.rank };
  }

  drop(version: string): void {
    this.#adapters.delete(version);
    this.#single.delete(version);
    this.#combined = this.#combined.filter(({ places }) => !places.has(version));
  }

  has(version: string): boolean {
    return this.#adapters.has(version);
  }

  /**
   * A layout that holds these versions. A single one brings only its own rank columns; of several, one that was made
   * before is taken where it holds few others: making one copies all weights, and sequences come and go.
   */
  combination(versions: readonly string[]): Combination {
    if (versions.length === 1) return this.#one(versions[0] as string);
    const fits = ({ places }: Combination) =>
      places.size <= 2 * versions.length && versions.every((version) => places.has(version));
    const found = this.#combined.find(fits) ?? this.#combine(versions.map((version) => this.#get(version)));
    this.#combined = [...this.#combined.filter((item) => item !== found), found].slice(-MOST_COMBINATIONS);
    return found;
  }

  #one(version: string): Combination {
    const found = this.#single.get(version);
    if (found === undefined) throw new NotFoundError(`adapter version ${version} is not loaded`);
    return found;
  }

  #combine(adapters: readonly Adapter[]): Combination {
    return {
      layout: layOutAdapters(this.config, adapters),
      places: new Map(adapters.map(({ digest }, place) => [digest, place])),
    };
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
