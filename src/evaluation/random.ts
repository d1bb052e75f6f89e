const { imul } = Math;

/**
 * Uniform numbers in [0, 1) from a seed: SplitMix32. Published intervals rest on its numbers, so it stays beside
 * `randomNumbers` of util.
 */
export function splitMix32(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}
