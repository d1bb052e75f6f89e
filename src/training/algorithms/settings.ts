// Everything that decides advantages and loss, with the defaults of the protocol (section 5).

import type { Aggregation } from './aggregation.js';
import type { KlEstimator } from './losses/kl.js';

/** How a sequence's reward becomes advantages of its tokens; one file each. */
export type AdvantageName =
  | 'none'
  | 'gae'
  | 'grpo'
  | 'group-mean'
  | 'rloo'
  | 'reinforce++'
  | 'reinforce++-baseline';

/** The policy's loss for a token; one file each. */
export type PolicyLossName =
  | 'clipped'
  | 'reinforce'
  | 'cispo'
  | 'gspo'
  | 'kl-cov'
  | 'clip-cov'
  | 'negative-log-likelihood';

export interface AlgorithmSettings {
  readonly advantage: AdvantageName;
  readonly policyLoss: PolicyLossName;
  readonly aggregation: Aggregation;
  /** Tokens that `seq-mean-token-sum-norm` divides by: the longest response allowed. */
  readonly tokenSumNorm: number;

  /** rho is clipped to [1 - low, 1 + high]. */
  readonly clipEpsilonLow: number;
  readonly clipEpsilonHigh: number;
  /** Bounds the loss by this times |A| where A < 0; null: off. */
  readonly dualClip: number | null;
  /** cispo: upper bound of the detached ratio. */
  readonly cispoMax: number;
  /** negative-log-likelihood: power of 1 - p in a token's weight; 0: all tokens weigh the same. */
  readonly focalGamma: number;
  /** kl-cov: share of tokens that are held, and the weight of |logp - logpOld| there. */
  readonly klCovShare: number;
  readonly klCovCoefficient: number;
  /** clip-cov: share of tokens that lose their gradient, and the covariances between which they lie. */
  readonly clipCovShare: number;
  readonly clipCovLow: number;
  readonly clipCovHigh: number;

  /** Where KL to the reference policy is charged. */
  readonly klPlace: 'none' | 'reward' | 'loss';
  readonly klEstimator: KlEstimator;
  readonly klBeta: number;

  readonly gamma: number;
  readonly gaeLambda: number;
  /** The critic's values move by at most this for free. */
  readonly valueClip: number;

  /** A of a group of one: the reward less the rollout's `baseline`, or the reward itself. */
  readonly groupOfOne: 'running-baseline' | 'reward';
  /** Groups whose rewards are all equal: left out, or kept with A = 0 so that KL still acts. */
  readonly equalGroups: 'skip' | 'keep';
  /** Soft penalty on sampled tokens, DAPO eq. 13; null: off. */
  readonly overlong: { readonly maxTokens: number; readonly cacheTokens: number } | null;

  /** Cap of the weights exp(logpOld - logpEngine). */
  readonly importanceCap: number;
  /** Rollouts are dropped when their oldest token lies more versions back. */
  readonly maxStaleness: number;
  readonly entropyBonus: number;
  /** Further epochs on a batch end when approximate KL passes 1.5 times this; null: never. */
  readonly targetKl: number | null;
  /** Add-ons, off at 0. */
  readonly lldsWeight: number;
  readonly echoWeight: number;
}

export const DEFAULT_SETTINGS: AlgorithmSettings = {
  advantage: 'grpo',
  policyLoss: 'clipped',
  aggregation: 'seq-mean-token-mean',
  tokenSumNorm: 4096,
  clipEpsilonLow: 0.2,
  clipEpsilonHigh: 0.2,
  dualClip: null,
  cispoMax: 5,
  focalGamma: 0,
  klCovShare: 2e-4,
  klCovCoefficient: 1,
  clipCovShare: 2e-4,
  clipCovLow: 1,
  clipCovHigh: 5,
  klPlace: 'loss',
  klEstimator: 'k3',
  klBeta: 0.001,
  gamma: 1,
  gaeLambda: 1,
  valueClip: 0.2,
  groupOfOne: 'running-baseline',
  equalGroups: 'skip',
  overlong: null,
  importanceCap: 2,
  maxStaleness: 4,
  entropyBonus: 0,
  targetKl: null,
  lldsWeight: 0,
  echoWeight: 0,
};
