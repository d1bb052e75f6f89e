// Search by comparing with everything: what the recall of a graph is measured against.

import { readHnswVectors } from '#searchloop/retrieval/hnsw/hnsw-file.js';
import type { Metric, Neighbor } from '#searchloop/retrieval/hnsw/hnsw-index.js';
import { dot, lengthOf } from '#searchloop/retrieval/hnsw/vectors.js';

/**
 * The true k nearest of each query among the vectors in a graph's file. Memory does not grow with the file.
 * @param queries f32 [Q][dimension]
 */
export function exactSearch(
  path: string,
  queries: readonly Float32Array[],
  k: number,
  metric: Metric,
): Neighbor[][] {
  const prepared = queries.map((query) => {
    const length = metric === 'cosine' ? lengthOf(query) : 1;
    return query.map((value) => value / length);
  });
  const best: Neighbor[][] = queries.map(() => []);
  for (const { label, vector, deleted } of readHnswVectors(path)) {
    if (deleted) continue;
    for (const [q, query] of prepared.entries())
      insert(best[q] as Neighbor[], { label, score: dot(query, vector) }, k);
  }
  return best;
}

/** Keeps the k best in order; among equals the one that came first stays first. */
function insert(best: Neighbor[], candidate: Neighbor, k: number): void {
  const last = best[k - 1];
  if (last !== undefined && last.score >= candidate.score) return;
  let at = best.length;
  while (at > 0 && (best[at - 1] as Neighbor).score < candidate.score) at--;
  best.splice(at, 0, candidate);
  if (best.length > k) best.pop();
}
