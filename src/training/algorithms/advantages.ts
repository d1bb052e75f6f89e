// From rewards to an advantage for each sampled token: dispatch over the estimators and what all of them share.
//
// Advantages belong to all rollouts of a step, before they are cut into optimizer batches: groups must be whole and
// whitening runs over all sampled tokens. A rollout without sampled tokens takes no part in anything.

import { InvalidInputError } from '../../errors.js';
import { sum } from '../../util/mean.js';
import { discountedReturns } from './advantages/discounted-returns.js';
import { gae } from './advantages/gae.js';
import { groupMeanAdvantages } from './advantages/group-mean.js';
import { advantagesByGroup, isEqualGroup, membersByGroup } from './advantages/groups.js';
import { grpoAdvantages } from './advantages/grpo.js';
import { overlongPenalty } from './advantages/overlong.js';
import { rlooAdvantages } from './advantages/rloo.js';
import { type KlCharge, tokenRewards } from './advantages/token-rewards.js';
import { whiten } from './advantages/whiten.js';
import { maskedPositions } from './masked.js';
import { MetricBuilder } from './metrics.js';
import type { MetricSums, RolloutData } from './objective.js';
import type { AdvantageName, AlgorithmSettings } from './settings.js';

export interface AdvantageResult {
  /** For each rollout [T], 0 where lossMask is 0. */
  readonly advantages: readonly Float64Array[];
  /** Targets of the critic, for each rollout [T]; null without one. */
  readonly returns: readonly Float64Array[] | null;
  /** False: carries no signal (no sampled token; a group of equal rewards) and belongs in no optimizer batch. */
  readonly keep: readonly boolean[];
  readonly metrics: MetricSums;
}

/** A rollout on its way to advantages. */
interface Shaped {
  readonly rollout: RolloutData;
  readonly sampledTokens: number;
  /** Outcome with the over-long penalty. */
  readonly reward: number;
  /** The same, spread over the tokens and with the KL charge. */
  readonly tokenRewards: Float64Array;
}

const GROUP_ADVANTAGES: Partial<Record<AdvantageName, (rewards: readonly number[]) => readonly number[]>> = {
  grpo: grpoAdvantages,
  'group-mean': groupMeanAdvantages,
  rloo: rlooAdvantages,
  'reinforce++-baseline': groupMeanAdvantages,
};

/**
 * @param rollouts  all of one step. `gae` needs `valuesOld`; KL in the reward needs `logprobsOld` and `logprobsRef`
 * @throws {InvalidInputError} one of these is missing, has another length than the mask, or is not finite under it;
 *                             a reward is not finite
 */
export function computeAdvantages(
  rollouts: readonly RolloutData[],
  settings: AlgorithmSettings,
): AdvantageResult {
  const shaped = rollouts.map((rollout) => shape(rollout, settings));
  const live = shaped.filter(({ sampledTokens }) => sampledTokens > 0);
  const ofGroup = GROUP_ADVANTAGES[settings.advantage];
  const equal = equalGroups(live);
  const skipped = ofGroup !== undefined && settings.equalGroups === 'skip' ? equal : new Set<string>();
  const keep = shaped.map(({ rollout, sampledTokens }) => sampledTokens > 0 && !skipped.has(rollout.groupId));
  const kept = shaped.filter((_, i) => keep[i]);
  const made =
    ofGroup === undefined ? tokenAdvantages(kept, settings) : groupAdvantages(kept, ofGroup, equal, settings);
  const inAll = (rows: readonly Float64Array[]): Float64Array[] => {
    let next = 0;
    return rollouts.map(({ lossMask }, i) => (keep[i] ? rows[next++]! : new Float64Array(lossMask.length)));
  };
  return {
    advantages: inAll(made.advantages),
    returns: made.returns === null ? null : inAll(made.returns),
    keep,
    metrics: metricsOf(live, made.advantages, equal),
  };
}

function shape(rollout: RolloutData, settings: AlgorithmSettings): Shaped {
  const { lossMask, reward: outcome } = rollout;
  if (!Number.isFinite(outcome)) throw new InvalidInputError(`reward: not finite (${outcome})`, 'reward');
  const sampledTokens = maskedPositions(lossMask, 'lossMask').length;
  const reward =
    outcome + (settings.overlong === null ? 0 : overlongPenalty(sampledTokens, settings.overlong));
  const charge = sampledTokens > 0 ? klCharge(rollout, settings) : null;
  return { rollout, sampledTokens, reward, tokenRewards: tokenRewards(reward, lossMask, charge) };
}

function klCharge({ logprobsOld, logprobsRef }: RolloutData, settings: AlgorithmSettings): KlCharge | null {
  const { klPlace, klBeta, klEstimator } = settings;
  if (klPlace !== 'reward' || klBeta === 0) return null;
  if (logprobsOld === undefined || logprobsRef === undefined) {
    const missing = logprobsOld === undefined ? 'logprobsOld' : 'logprobsRef';
    throw new InvalidInputError(`KL in the reward needs ${missing}, got none`, missing);
  }
  return { logprobsOld, logprobsRef, beta: klBeta, estimator: klEstimator };
}

function equalGroups(live: readonly Shaped[]): ReadonlySet<string> {
  const groups = membersByGroup(live.map(({ rollout }) => rollout.groupId));
  const equal = [...groups].filter(([, members]) => isEqualGroup(members.map((i) => live[i]!.reward)));
  return new Set(equal.map(([group]) => group));
}

interface MadeAdvantages {
  readonly advantages: readonly Float64Array[];
  readonly returns: readonly Float64Array[] | null;
}

/** One number for each rollout, the same for all its sampled tokens. */
function groupAdvantages(
  kept: readonly Shaped[],
  ofGroup: (rewards: readonly number[]) => readonly number[],
  equal: ReadonlySet<string>,
  settings: AlgorithmSettings,
): MadeAdvantages {
  const own = settings.groupOfOne === 'reward';
  const numbers = advantagesByGroup(
    kept.map((rollout) => sum(rollout.tokenRewards)),
    kept.map(({ rollout }) => rollout.groupId),
    kept.map(({ rollout }) => (own ? 0 : (rollout.baseline ?? 0))),
    ofGroup,
  );
  const rows = kept.map(({ rollout }, i) =>
    Float64Array.from(rollout.lossMask, (m) => (m === 1 && !equal.has(rollout.groupId) ? numbers[i]! : 0)),
  );
  const whitened = settings.advantage === 'reinforce++-baseline';
  return { advantages: whitened ? whiten(rows, masksOf(kept)) : rows, returns: null };
}

function tokenAdvantages(kept: readonly Shaped[], settings: AlgorithmSettings): MadeAdvantages {
  if (settings.advantage === 'gae') {
    const discount = { gamma: settings.gamma, lambda: settings.gaeLambda };
    const rows = kept.map(({ rollout, tokenRewards: rewards }) => {
      if (rollout.valuesOld === undefined)
        throw new InvalidInputError('gae needs valuesOld, got none', 'valuesOld');
      return gae(rewards, rollout.valuesOld, rollout.lossMask, discount);
    });
    const advantages = rows.map((row) => row.advantages);
    return { advantages: whiten(advantages, masksOf(kept)), returns: rows.map((row) => row.returns) };
  }
  if (settings.advantage === 'reinforce++') {
    const rows = kept.map((row) => discountedReturns(row.tokenRewards, row.rollout.lossMask, settings.gamma));
    return { advantages: whiten(rows, masksOf(kept)), returns: null };
  }
  return { advantages: kept.map(({ rollout }) => new Float64Array(rollout.lossMask.length)), returns: null };
}

const masksOf = (shaped: readonly Shaped[]): ArrayLike<number>[] =>
  shaped.map(({ rollout }) => rollout.lossMask);

function metricsOf(
  live: readonly Shaped[],
  advantages: readonly Float64Array[],
  equal: ReadonlySet<string>,
): MetricSums {
  const metrics = new MetricBuilder();
  live.forEach(({ rollout, reward, sampledTokens, tokenRewards: rewards }) => {
    metrics.observe('reward', rollout.reward);
    metrics.observe('overlongPenalty', reward - rollout.reward);
    metrics.observe('klCharge', reward - sum(rewards));
    metrics.observe('sampledTokens', sampledTokens);
  });
  for (const row of advantages) {
    for (const advantage of row) metrics.maximum('advantageMax', Math.abs(advantage));
  }
  const groups = membersByGroup(live.map(({ rollout }) => rollout.groupId));
  for (const [group, members] of groups) {
    if (members.length > 1) metrics.observe('zeroVarianceShare', equal.has(group) ? 1 : 0);
  }
  return metrics.build();
}
