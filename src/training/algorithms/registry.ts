// Algorithms by name: what each sets, on top of the defaults. The files of the advantages and losses say why.

import { InvalidInputError } from '../../errors.js';
import { type AlgorithmSettings, DEFAULT_SETTINGS } from './settings.js';

export interface Algorithm {
  readonly summary: string;
  /** Needs a value model, its `valuesOld` and a value objective. */
  readonly usesCritic: boolean;
  /** Trains on given sequences; no rewards, groups or old log-probabilities. */
  readonly supervised: boolean;
  readonly settings: Partial<AlgorithmSettings>;
}

const online = { usesCritic: false, supervised: false } as const;

export const ALGORITHMS = {
  grpo: {
    ...online,
    summary: 'clipped surrogate, advantages normalised within the group, k3 in the loss',
    settings: {},
  },
  ppo: {
    ...online,
    usesCritic: true,
    summary: 'clipped surrogate, GAE over sampled tokens with a critic, k1 in the reward',
    settings: { advantage: 'gae', klPlace: 'reward', klEstimator: 'k1' },
  },
  reinforce: {
    ...online,
    summary: 'reward less baseline, no ratio, one epoch',
    settings: { advantage: 'group-mean', policyLoss: 'reinforce' },
  },
  rloo: {
    ...online,
    summary: 'baseline is the mean of the other members of the group',
    settings: { advantage: 'rloo' },
  },
  'reinforce++': {
    ...online,
    summary: 'token KL in the reward, discounted returns whitened over the batch',
    settings: { advantage: 'reinforce++', klPlace: 'reward', klEstimator: 'k1' },
  },
  'dr-grpo': {
    ...online,
    summary: 'no division by the deviation, constant denominator',
    settings: { advantage: 'group-mean', aggregation: 'seq-mean-token-sum-norm' },
  },
  dapo: {
    ...online,
    summary: 'higher upper clip, token mean, over-long penalty, no KL; sample until groups differ',
    settings: { clipEpsilonHigh: 0.28, aggregation: 'token-mean', klPlace: 'none' },
  },
  cispo: {
    ...online,
    summary: 'detached, capped ratio as the weight of the log-probability',
    settings: { policyLoss: 'cispo', aggregation: 'token-mean' },
  },
  gspo: {
    ...online,
    summary: 'one ratio for each sequence',
    settings: { policyLoss: 'gspo', clipEpsilonLow: 3e-4, clipEpsilonHigh: 4e-4 },
  },
  'kl-cov': {
    ...online,
    summary: 'unclipped; tokens of the largest covariance are held near the old policy',
    settings: { policyLoss: 'kl-cov', aggregation: 'token-mean' },
  },
  'clip-cov': {
    ...online,
    summary: 'clipped; a few tokens of large covariance get no gradient',
    settings: { policyLoss: 'clip-cov', aggregation: 'token-mean' },
  },
  sft: {
    usesCritic: false,
    supervised: true,
    summary: 'cross-entropy on the sampled tokens of given trajectories',
    settings: {
      advantage: 'none',
      policyLoss: 'negative-log-likelihood',
      aggregation: 'token-mean',
      klPlace: 'none',
    },
  },
} as const satisfies Readonly<Record<string, Algorithm>>;

export type AlgorithmName = keyof typeof ALGORITHMS;

export const algorithmNames = (): AlgorithmName[] => Object.keys(ALGORITHMS) as AlgorithmName[];

/** @throws {InvalidInputError} no algorithm has this name */
export function algorithmOf(name: string): Algorithm {
  if (!Object.hasOwn(ALGORITHMS, name)) {
    throw new InvalidInputError(
      `unknown algorithm "${name}"; known: ${algorithmNames().join(', ')}`,
      'algorithm',
    );
  }
  return ALGORITHMS[name as AlgorithmName];
}

/**
 * Defaults, then the algorithm's own values, then the caller's.
 * @throws {InvalidInputError} no algorithm has this name
 */
export function algorithmSettings(
  name: string,
  overrides: Partial<AlgorithmSettings> = {},
): AlgorithmSettings {
  return { ...DEFAULT_SETTINGS, ...algorithmOf(name).settings, ...overrides };
}
