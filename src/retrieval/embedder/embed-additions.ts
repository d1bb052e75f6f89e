import type { PassageAddition, PassageInput } from '../passages/passage-store.js';
import { type Embedder, embeddingText } from './embedder.js';

/** Passages with their vectors, as an index takes them. */
export async function embedAdditions(
  embedder: Embedder,
  passages: readonly PassageInput[],
  signal?: AbortSignal,
): Promise<PassageAddition[]> {
  const { dimension } = embedder.info;
  const vectors = await embedder.embed(passages.map(embeddingText), 'passage', { signal });
  return passages.map((passage, i) => ({
    passage,
    vector: vectors.slice(i * dimension, (i + 1) * dimension),
  }));
}
