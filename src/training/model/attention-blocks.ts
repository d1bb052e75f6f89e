// How attention over a packed batch is cut: blocks of queries of one sequence, each with the keys up to its last query.

import type { TensorView } from '../../runtime/index.js';
import type { Span } from './packing.js';

/** Queries of a block: scores of all heads of a block fit the cache, and few of them lie above the diagonal. */
const BLOCK = 128;

export interface Block {
  /** First row of the queries. */
  readonly start: number;
  readonly queries: number;
  /** First row of the keys. */
  readonly keysStart: number;
  readonly keys: number;
  /** f32 [group * queries, keys], 0 or -infinity. */
  readonly mask: TensorView;
}

/** Plans blocks; masks of equal form are made once. */
export class BlockPlanner {
  readonly #masks = new Map<string, TensorView>();

  /** @param group query heads that share a key head */
  constructor(private readonly group: number) {}

  plan(spans: readonly Span[]): readonly Block[] {
    return spans.flatMap(({ start, length }) =>
      Array.from({ length: Math.ceil(length / BLOCK) }, (_, index) => {
        const queries = Math.min(BLOCK, length - index * BLOCK);
        const keys = index * BLOCK + queries;
        return {
          start: start + index * BLOCK,
          queries,
          keysStart: start,
          keys,
          mask: this.#mask(queries, keys),
        };
      }),
    );
  }

  #mask(queries: number, keys: number): TensorView {
    const key = `${queries},${keys}`;
    const known = this.#masks.get(key);
    if (known) return known;
    const data = new Float32Array(this.group * queries * keys);
    for (let query = 0; query < queries; query++)
      for (let head = 0; head < this.group; head++) {
        const row = (query * this.group + head) * keys;
        data.fill(Number.NEGATIVE_INFINITY, row + keys - queries + query + 1, row + keys);
      }
    const mask: TensorView = { type: 'float32', shape: [this.group * queries, keys], data };
    this.#masks.set(key, mask);
    return mask;
  }
}
