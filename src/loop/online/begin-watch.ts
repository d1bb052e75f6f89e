// With what the watch of a new version begins.

import type { LoopConfig } from '../../config/index.js';
import type { LabelledAnswer } from './known-answer.js';
import type { LoopState } from './state.js';
import { evidenceOf, newSequentialState } from './statistics/sequential-test.js';
import { outcomesUnder, type Watch, type WatchSettings, watchSettings } from './watch.js';

/** What is known of answers when a version goes out. */
export interface Heard {
  readonly answers: readonly LabelledAnswer[];
  /** Number of the last feedback that is in them. */
  readonly sequence: number;
}

/**
 * Where users have not had their say on the version that is live, the new one joins its watch: against the same older version,
 * with all that was counted. Each publication would else begin with nothing, and where versions follow each other faster than
 * labels no watch would ever end.
 */
export function beginWatch(
  candidate: Pick<Watch, 'version' | 'trainerStep' | 'confirmedBy'>,
  { live, watch }: Pick<LoopState, 'live' | 'watch'>,
  heard: Heard,
  loop: LoopConfig,
): Watch {
  const settings = watchSettings(loop);
  const isTrial = loop.canaryShare > 0;
  const made = { ...candidate, share: isTrial ? loop.canaryShare : 1, since: Date.now() };
  // Those of a trial come at the same time as its own.
  const older = outcomesUnder(isTrial ? [] : heard.answers, live, settings);
  if (!isTrial && watch?.version === live && isUndecided(watch, older.outcomes.length, settings))
    return { ...watch, ...made, earlier: [...watch.earlier, live] };
  return {
    ...made,
    against: live,
    earlier: [],
    feedback: heard.sequence,
    test: newSequentialState(),
    pairs: [],
    counted: [],
    settled: newSequentialState(),
    newer: [],
    older: older.outcomes,
    weights: { newer: {}, older: older.weights },
    beyondShare: 0,
  };
}

/** Users have had their say on the version that is live, as far as a verdict takes, and did not send it back. */
export function hasStood(
  { live, watch }: Pick<LoopState, 'live' | 'watch'>,
  { watchMinPairs }: Pick<LoopConfig, 'watchMinPairs'>,
): boolean {
  const isOwn = watch !== null && watch.version === live && watch.earlier.length === 0;
  return isOwn && watch.test.pairs >= watchMinPairs;
}

/**
 * Too few spoke, or what they said leans against it and a successor would still be in as many pairs as a verdict takes. Else it
 * has stood its test, and is what its successor is compared with; so it is where more is known of it than of the version before,
 * which answers no more.
 *
 * @param own  outcomes of the watched version that its successor could be compared with
 */
function isUndecided(
  { share, test, older }: Watch,
  own: number,
  { minPairs, maxPairs }: WatchSettings,
): boolean {
  const { pairs } = test;
  if (share < 1) return false;
  if (pairs < minPairs) return pairs + older.length >= Math.min(minPairs, own);
  return evidenceOf(test) > 1 && Math.min(maxPairs - pairs, older.length) >= minPairs;
}
