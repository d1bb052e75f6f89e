/** Rows of one run of the encoder. */
export interface TokenBatch {
  /** Places of the rows in the caller's list. */
  readonly rows: readonly number[];
  /** Tokens of the longest row, to which the others are padded. */
  readonly length: number;
}

/**
 * Puts sequences of like length together, longest first, so that little is computed on padding.
 * @param lengths        tokens of each sequence
 * @param maxBatchTokens padded tokens of a batch; a longer sequence stands alone
 */
export function batchByLength(lengths: readonly number[], maxBatchTokens: number): TokenBatch[] {
  const order = lengths
    .map((_, row) => row)
    .sort((a, b) => (lengths[b] as number) - (lengths[a] as number) || a - b);
  const batches: TokenBatch[] = [];
  for (let at = 0; at < order.length; ) {
    const length = Math.max(1, lengths[order[at] as number] as number);
    const rows = order.slice(at, at + Math.max(1, Math.floor(maxBatchTokens / length)));
    batches.push({ rows, length });
    at += rows.length;
  }
  return batches;
}
