// What became of the records that a candidate was made of.

import type { AdapterRecord } from '../../trajectory/index.js';

type Made = Pick<AdapterRecord, 'digest' | 'parentDigest' | 'deletedRecords'>;

/**
 * Records that were deleted after versions had been trained on them, over the line from `version` back to `live`, which is
 * left out: what is live is not judged again.
 */
export function deletedAlong(adapters: readonly Made[], version: string, live: string): number {
  const made = new Map(adapters.map((adapter) => [adapter.digest, adapter]));
  const seen = new Set<string>();
  let sum = 0;
  for (let at: string | null = version; at !== null && at !== live && !seen.has(at); ) {
    seen.add(at);
    const adapter: Made | undefined = made.get(at);
    sum += adapter?.deletedRecords ?? 0;
    at = adapter?.parentDigest ?? null;
  }
  return sum;
}
