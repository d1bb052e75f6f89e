// Proves a record: its tokens are given to the policy again, one by one, and what the policy says now is compared
// with what the record says.

import { type Generator, scoreGivenTokens } from '../../engine/index.js';
import type { Retriever } from '../../retrieval/index.js';
import type { TrajectoryRecord } from '../../trajectory/index.js';

export interface ReplayReport {
  readonly id: string;
  readonly tokens: number;
  /** Sampled tokens that were scored again. */
  readonly scored: number;
  /** Of |log-probability now - then|, nats. */
  readonly meanDifference: number;
  readonly largestDifference: number;
  /** Where the largest one is. */
  readonly largestAt: number | null;
  /**
   * Sampled tokens that are not the likeliest one now; 0 means that decoding again gives the very same text. Null
   * for records that were not greedy.
   */
  readonly changedTokens: number | null;
  /** Searches whose passages are not the same now; null where they were not repeated. */
  readonly changedSearches: number | null;
  /** Snapshots of the index, then and now; null where nothing was searched. They differ: searches are not repeated. */
  readonly index: { readonly recorded: string | null; readonly present: string } | null;
}

/**
 * Scores every sampled token of a record under the version that sampled it.
 * @param retriever  null: searches are not repeated
 * @throws {NotFoundError} the engine has not loaded that version
 */
export async function replayRecord(
  record: TrajectoryRecord,
  generator: Pick<Generator, 'open'>,
  retriever: Pick<Retriever, 'search' | 'snapshotId'> | null,
  signal: AbortSignal,
): Promise<ReplayReport> {
  const version = versionOf(record);
  const adapter = version === BASE ? null : version;
  const sequence = await generator.open({ adapter, maxLength: record.tokenIds.length + 1, signal });
  const isGreedy = greedy(record.sampling);
  let scored = 0;
  let sum = 0;
  let largest = 0;
  let largestAt: number | null = null;
  let changed = 0;
  try {
    const scores = scoreGivenTokens(sequence, record.tokenIds, (at) => isSampled(record, at), 1);
    for await (const { at, token } of scores) {
      const difference = Math.abs(token.logprob - (record.logprobs[at] ?? Number.NaN));
      scored += 1;
      sum += difference;
      if (difference > largest || Number.isNaN(difference)) [largest, largestAt] = [difference, at];
      const id = record.tokenIds[at];
      if (token.id !== id || token.alternatives?.[0]?.id !== id) changed += 1;
    }
  } finally {
    sequence.close();
  }
  return {
    id: record.id,
    tokens: record.tokenIds.length,
    scored,
    meanDifference: sum / Math.max(1, scored),
    largestDifference: largest,
    largestAt,
    changedTokens: isGreedy ? changed : null,
    changedSearches: await changedSearches(record, retriever, signal),
    index: retriever === null ? null : { recorded: record.indexSnapshotId, present: retriever.snapshotId },
  };
}

/** Version without an adapter. */
export const BASE = 'base';

/** A record is of one version from its first token to its last. */
export const versionOf = ({ versions }: Pick<TrajectoryRecord, 'versions'>): string =>
  versions[0]?.adapterVersion ?? BASE;

const isSampled = ({ origin }: TrajectoryRecord, at: number): boolean =>
  origin[at] === 'policy' || origin[at] === 'policyInformation';

/** Penalties and biases change what is likeliest; such records are scored only. */
function greedy(sampling: TrajectoryRecord['sampling']): boolean {
  const {
    temperature,
    frequencyPenalty = 0,
    presencePenalty = 0,
    repetitionPenalty = 1,
    logitBias,
  } = sampling;
  const isPlain = frequencyPenalty === 0 && presencePenalty === 0 && repetitionPenalty === 1;
  return temperature === 0 && isPlain && Object.keys((logitBias ?? {}) as object).length === 0;
}

async function changedSearches(
  record: TrajectoryRecord,
  retriever: Pick<Retriever, 'search' | 'snapshotId'> | null,
  signal: AbortSignal,
): Promise<number | null> {
  if (retriever === null || retriever.snapshotId !== record.indexSnapshotId) return null;
  let changed = 0;
  for (const { query, passageIds, error } of record.searches) {
    if (error !== null) continue;
    const [passages = []] = await retriever.search([query], passageIds.length, { signal });
    if (passages.map(({ id }) => id).join('\n') !== passageIds.join('\n')) changed += 1;
  }
  return changed;
}
