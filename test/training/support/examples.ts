import type { Example } from '../../../src/training/index.js';
import { derivedSeed } from '../../../src/util/derived-seed.js';
import { randomNumbers } from '../../../src/util/random.js';

/** Made-up trajectories over a small vocabulary: a prompt, sampled tokens, retrieved tokens, sampled tokens. */
export function madeExamples(count: number, vocabSize: number, seed = 1): Example[] {
  return Array.from({ length: count }, (_, index) => {
    const random = randomNumbers(derivedSeed(seed, 'example', index));
    const length = 8 + Math.floor(random() * 24);
    const prompt = 3;
    const retrieved = Math.floor(length / 2);
    const origin = Array.from({ length }, (_, t) =>
      t < prompt ? 'prompt' : t >= retrieved && t < retrieved + 3 ? 'environment' : 'policy',
    );
    return {
      id: `example-${index}`,
      tokenIds: Int32Array.from({ length }, () => Math.floor(random() * vocabSize)),
      lossMask: Uint8Array.from(origin, (from) => (from === 'policy' ? 1 : 0)),
      environmentMask: Uint8Array.from(origin, (from) => (from === 'environment' ? 1 : 0)),
    };
  });
}
