// Adapter versions that are resident in the worker, and their layouts side by side for the runs that need them.

import { NotFoundError } from '../../errors.js';
import { type AdapterLayout, adapterLayout, type DecoderConfig, joinLayouts } from '../../model/index.js';
import type { ReadAdapter } from '../messages.js';

/** Layouts of several versions that are kept; a single version's own layout does not count. */
const MOST_COMBINATIONS = 3;

/** Versions side by side. */
export interface Combination {
  readonly layout: AdapterLayout;
  /** Index of each version in the layout. */
  readonly places: ReadonlyMap<string, number>;
}

export class AdapterStore {
  readonly #single = new Map<string, Combination>();
  /** Most recently used last. */
  #combined: Combination[] = [];

  constructor(private readonly config: DecoderConfig) {}

  /** A version that is already here is not kept twice. */
  add({ version, layout }: ReadAdapter): void {
    if (!this.#single.has(version))
      this.#single.set(version, { layout: adapterLayout(layout), places: new Map([[version, 0]]) });
  }

  drop(version: string): void {
    this.#single.delete(version);
    this.#combined = this.#combined.filter(({ places }) => !places.has(version));
  }

  /** All that is kept. */
  get layouts(): ReadonlySet<AdapterLayout> {
    return new Set([...this.#single.values(), ...this.#combined].map(({ layout }) => layout));
  }

  has(version: string): boolean {
    return this.#single.has(version);
  }

  /**
   * A layout that holds these versions. A single one brings only its own rank columns; of several, one that was made
   * before is taken where it holds few others: making one copies all weights, and sequences come and go.
   */
  combination(versions: readonly string[]): Combination {
    if (versions.length === 1) return this.#one(versions[0] as string);
    const fits = ({ places }: Combination) =>
      places.size <= 2 * versions.length && versions.every((version) => places.has(version));
    const found = this.#combined.find(fits) ?? this.#join(versions);
    this.#combined = [...this.#combined.filter((item) => item !== found), found].slice(-MOST_COMBINATIONS);
    return found;
  }

  #one(version: string): Combination {
    const found = this.#single.get(version);
    if (found === undefined) throw new NotFoundError(`adapter version ${version} is not loaded`);
    return found;
  }

  #join(versions: readonly string[]): Combination {
    return {
      layout: joinLayouts(
        this.config,
        versions.map((version) => this.#one(version).layout),
      ),
      places: new Map(versions.map((version, place) => [version, place])),
    };
  }
}
