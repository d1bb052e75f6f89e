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

/** Plans blocks. Masks of whole blocks are made once; those of the rest belong to one plan. */
export class BlockPlanner {
  readonly #wholeMasks = new Map<number, TensorView>();

  /** @param group query heads that share a key head */
  constructor(private readonly group: number) {}

  plan(spans: readonly Span[]): readonly Block[] {
    const restMasks = new Map<string, TensorView>();
    return spans.flatMap(({ start, length }) =>
      Array.from({ length: Math.ceil(length / BLOCK) }, (_, index) => {
        const queries = Math.min(BLOCK, length - index * BLOCK);
        const keys = index * BLOCK + queries;
        const mask =
          queries === BLOCK
            ? cached(this.#wholeMasks, keys, () => causalMask(this.group, queries, keys))
            : cached(restMasks, `${queries},${keys}`, () => causalMask(this.group, queries, keys));
        return { start: start + index * BLOCK, queries, keysStart: start, keys, mask };
      }),
    );
  }
}

function cached<Key>(known: Map<Key, TensorView>, key: Key, make: () => TensorView): TensorView {
  const view = known.get(key) ?? make();
  known.set(key, view);
  return view;
}

/** The last `queries` of `keys` tokens see what stands before them and themselves. */
function causalMask(group: number, queries: number, keys: number): TensorView {
  const data = new Float32Array(group * queries * keys);
  for (let query = 0; query < queries; query++)
    for (let head = 0; head < group; head++) {
      const row = (query * group + head) * keys;
      data.fill(Number.NEGATIVE_INFINITY, row + keys - queries + query + 1, row + keys);
    }
  return { type: 'float32', shape: [group * queries, keys], data };
}
