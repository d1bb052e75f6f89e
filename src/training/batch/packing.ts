// Micro-batches: few and full, for a model packs the tokens of its sequences one after the other.

/** Most tokens of a micro-batch: what may still run once a step shall stop. */
const MICRO_BATCH_TOKENS = 2048;

/**
 * Splits a batch into micro-batches of at most `maxTokens` tokens; a longer sequence stands alone. Longest first
 * (first fit decreasing), so that a batch that does not fit memory fails at once. Which sequences stand together
 * depends on the lengths alone.
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
  const batches: { readonly members: number[]; tokens: number }[] = [];
  for (const index of order) {
    const length = lengths[index] as number;
    const open = batches.find(({ tokens }) => tokens + length <= maxTokens);
    if (open === undefined) batches.push({ members: [index], tokens: length });
    else {
      open.members.push(index);
      open.tokens += length;
    }
  }
  return batches.map(({ members }) => members);
}
