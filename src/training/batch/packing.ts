// Micro-batches: sequences of like length together, so that little is padded.

/** Most tokens of a micro-batch, padding included: no more can start once a step shall stop. */
export const MICRO_BATCH_TOKENS = 2048;

/**
 * Splits a batch into micro-batches of at most `maxTokens` tokens (rows times the longest row); a longer
 * sequence stands alone. Longest first, so that a batch that does not fit memory fails at once. Which sequences
 * stand together depends on the lengths alone.
 *
 * @param lengths  tokens of each sequence; 0 leaves it out
 * @returns        indices into `lengths`, each once
 */
export function packMicroBatches(
  lengths: readonly number[],
  maxTokens: number = MICRO_BATCH_TOKENS,
): number[][] {
  const order = lengths
    .map((_, index) => index)
    .filter((index) => (lengths[index] as number) > 0)
    .sort((a, b) => (lengths[b] as number) - (lengths[a] as number) || a - b);
  const batches: number[][] = [];
  let rowTokens = 0;
  for (const index of order) {
    const open = batches.at(-1);
    if (open !== undefined && (open.length + 1) * rowTokens <= maxTokens) open.push(index);
    else {
      batches.push([index]);
      rowTokens = lengths[index] as number;
    }
  }
  return batches;
}
