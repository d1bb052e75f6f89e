// Random choices of a run without a state to keep: each follows from the run's seed and its own name.

import { derivedSeed } from './derived-seed.js';

/** Random numbers in [0, 1) with 32 bits, by Chris Doty-Humphrey's sfc32, begun from a seed. */
export function randomNumbers(seed: number): () => number {
  let [a, b, c, counter] = [0, seed >>> 0, Math.floor(seed / 2 ** 32) >>> 0, 1];
  const next = (): number => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return (sum >>> 0) / 2 ** 32;
  };
  for (let warmUp = 0; warmUp < 15; warmUp++) next();
  return next;
}

/** The numbers 0 to count - 1 in an order that the seed decides (Fisher-Yates). */
export function shuffledOrder(count: number, seed: number): number[] {
  const order = Array.from({ length: count }, (_, index) => index);
  const random = randomNumbers(seed);
  for (let last = count - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [order[last], order[other]] = [order[other] as number, order[last] as number];
  }
  return order;
}

/**
 * Items `from` to `to - 1` of an endless series of passes over `count` items, each pass shuffled anew: what a
 * loader would give, without a loader's state.
 */
export function itemsBetween(from: number, to: number, count: number, seed: number): number[] {
  let [pass, order] = [-1, [] as number[]];
  return Array.from({ length: Math.max(0, to - from) }, (_, offset) => {
    const position = from + offset;
    if (Math.floor(position / count) !== pass) {
      pass = Math.floor(position / count);
      order = shuffledOrder(count, derivedSeed(seed, 'pass', pass));
    }
    return order[position % count] as number;
  });
}
