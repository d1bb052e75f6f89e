// Watches a new version while outcomes come in, one pair after the other; may be looked at after each.

/** Plain data, kept with the loop's state. */
export interface SequentialState {
  readonly pairs: number;
  /** Sum of new minus old. */
  readonly sum: number;
  /** Log wealth of each bet. */
  readonly logWealth: number[];
}

export interface SequentialSettings {
  /** Probability that a version which is not worse than the margin allows is ever rolled back. */
  readonly alpha: number;
  /** Outcomes lie in [0, 1]; a mean difference down to minus this is allowed. */
  readonly margin: number;
  /** No verdict before so many pairs. */
  readonly minPairs: number;
  /** After so many without a verdict the version is kept. */
  readonly maxPairs: number;
}

export type SequentialVerdict = 'open' | 'worse' | 'kept';

/** Shares of the largest bet that can lose no more than all. Several, because how much worse it is nobody knows. */
const BETS = [0.05, 0.1, 0.2, 0.4, 0.8] as const;

export const newSequentialState = (): SequentialState => ({
  pairs: 0,
  sum: 0,
  logWealth: BETS.map(() => 0),
});

/**
 * Bets on "worse": wealth *= 1 + lambda (-margin - d) with d = newer - older. Where E[d] >= -margin the mean of the wealths is a
 * nonnegative supermartingale that starts at 1, so it ever reaches 1 / alpha with probability at most alpha (Ville).
 *
 * @param newer  outcome under the new version, in [0, 1]
 * @param older  outcome under the old one
 */
export function observePair(
  state: SequentialState,
  newer: number,
  older: number,
  { margin }: SequentialSettings,
): SequentialState {
  const gain = -margin - (newer - older);
  const largest = 1 / (1 + margin);
  return {
    pairs: state.pairs + 1,
    sum: state.sum + newer - older,
    logWealth: BETS.map((bet, i) => (state.logWealth[i] ?? 0) + Math.log1p(bet * largest * gain)),
  };
}

/** Mean wealth: evidence that the new version is worse; 20 is what alpha 0.05 asks for. */
export function evidenceOf({ logWealth }: SequentialState): number {
  return logWealth.reduce((sum, value) => sum + Math.exp(value), 0) / logWealth.length;
}

export function sequentialVerdict(state: SequentialState, settings: SequentialSettings): SequentialVerdict {
  if (state.pairs < settings.minPairs) return 'open';
  if (evidenceOf(state) >= 1 / settings.alpha) return 'worse';
  return state.pairs >= settings.maxPairs ? 'kept' : 'open';
}
