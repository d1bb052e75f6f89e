import { LRUCache } from 'lru-cache';
import type { Embedder } from '../embedder/embedder.js';

/** Vectors of the texts, by text; texts that are empty have none. */
export type QueryVectors = (texts: readonly string[]) => Promise<ReadonlyMap<string, Float32Array>>;

/** Embeds what is not in the cache, in one batch, each text once. @param cacheEntries vectors kept */
export function createQueryVectors(embedder: Embedder, cacheEntries: number): QueryVectors {
  const cache = cacheEntries > 0 ? new LRUCache<string, Float32Array>({ max: cacheEntries }) : null;
  const { dimension } = embedder.info;
  return async (texts) => {
    const vectors = new Map<string, Float32Array>();
    const missing: string[] = [];
    for (const text of new Set(texts)) {
      const known = cache?.get(text);
      if (known) vectors.set(text, known);
      else if (text !== '') missing.push(text);
    }
    if (missing.length === 0) return vectors;
    const matrix = await embedder.embed(missing, 'query');
    for (const [i, text] of missing.entries()) {
      const vector = matrix.slice(i * dimension, (i + 1) * dimension);
      vectors.set(text, vector);
      cache?.set(text, vector);
    }
    return vectors;
  };
}
