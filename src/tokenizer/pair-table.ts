// Two token ids to the rank and result of their merge: open addressing in one typed array, because a Map keyed by
// text or by a boxed number makes encoding several times slower.

const STRIDE = 4;

export interface PairTable {
  /** Index of the entry for the pair (first, second), or -1. */
  find(first: number, second: number): number;
  rank(entry: number): number;
  merged(entry: number): number;
}

const hash = (first: number, second: number): number => {
  const mixed = Math.imul(first, 0x9e3779b1) ^ Math.imul(second, 0x85ebca6b);
  return (mixed ^ (mixed >>> 15)) >>> 0;
};

/** @param merges [N] triples (first, second, merged); the index is the rank, a repeated pair takes its last rank. */
export function createPairTable(merges: readonly (readonly [number, number, number])[]): PairTable {
  let capacity = 16;
  while (capacity < merges.length * 2) capacity *= 2;
  const mask = capacity - 1;
  const table = new Int32Array(capacity * STRIDE).fill(-1);
  const slot = (first: number, second: number): number => {
    let index = hash(first, second) & mask;
    for (;;) {
      const at = index * STRIDE;
      if (table[at] === -1 || (table[at] === first && table[at + 1] === second)) return at;
      index = (index + 1) & mask;
    }
  };
  merges.forEach(([first, second, merged], rank) => {
    table.set([first, second, rank, merged], slot(first, second));
  });
  return {
    find: (first, second) => {
      const at = slot(first, second);
      return table[at] === -1 ? -1 : at;
    },
    rank: (entry) => table[entry + 2] as number,
    merged: (entry) => table[entry + 3] as number,
  };
}
