// Counter-based random numbers: the number for (seed, position) needs no state, so a sequence's draws do not
// depend on what else runs, on restarts or on the order of steps.

const PARITY = 0x1bd11bda;
const ROTATIONS = [13, 15, 26, 6, 17, 29, 16, 24] as const;

/**
 * Threefry-2x32 with 20 rounds: two random 32-bit words for a 64-bit key and a 64-bit counter.
 *
 * @param out receives the two words, unsigned
 * @see Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"
 */
export function threefry2x32(
  key0: number,
  key1: number,
  counter0: number,
  counter1: number,
  out: Uint32Array,
): void {
  const keys = [key0 | 0, key1 | 0, PARITY ^ key0 ^ key1] as const;
  let x0 = (counter0 + keys[0]) | 0;
  let x1 = (counter1 + keys[1]) | 0;
  for (let round = 0; round < 20; round++) {
    const r = ROTATIONS[round & 7] as number;
    x0 = (x0 + x1) | 0;
    x1 = (x1 << r) | (x1 >>> (32 - r));
    x1 ^= x0;
    if ((round & 3) === 3) {
      const injection = (round >> 2) + 1;
      x0 = (x0 + (keys[injection % 3] as number)) | 0;
      x1 = (x1 + (keys[(injection + 1) % 3] as number) + injection) | 0;
    }
  }
  out[0] = x0 >>> 0;
  out[1] = x1 >>> 0;
}

const words = new Uint32Array(2);

/**
 * The uniform number in [0, 1) that belongs to a token position, with 53 random bits.
 *
 * @param seed     integer in the safe range
 * @param position index of the token in its sequence
 */
export function uniformAt(seed: number, position: number): number {
  threefry2x32(seed >>> 0, Math.floor(seed / 0x1_0000_0000) >>> 0, position >>> 0, 0, words);
  return ((words[0] as number) >>> 5) * 2 ** -27 + ((words[1] as number) >>> 6) * 2 ** -53;
}
