// What the configuration says of advantages and loss, over the preset and the algorithm (protocol, section 5).

import type { TrainingConfig } from '../../config/index.js';
import { ConfigError } from '../../errors.js';
import {
  type AlgorithmName,
  type AlgorithmSettings,
  algorithmOf,
  algorithmSettings,
  type TrainingPreset,
} from '../algorithms/index.js';

/** Settings of the algorithm that the configuration may name, each under the same key. */
const OBJECTIVE_KEYS = [
  'aggregation',
  'tokenSumNorm',
  'klPlace',
  'klBeta',
  'clipEpsilonLow',
  'clipEpsilonHigh',
  'dualClip',
  'cispoMax',
  'klCovShare',
  'klCovCoefficient',
  'clipCovShare',
  'clipCovLow',
  'clipCovHigh',
  'gamma',
  'gaeLambda',
  'valueClip',
  'groupOfOne',
  'equalGroups',
  'importanceCap',
  'targetKl',
  'lldsWeight',
  'echoWeight',
] as const;

/** The others concern rewards and policies that given trajectories have not. */
const SUPERVISED_KEYS: readonly string[] = ['aggregation', 'tokenSumNorm'];

/** An estimator that goes with its place: k1 has no gradient in a loss, on average. */
const ESTIMATORS = { none: null, reward: 'k1', loss: 'k3' } as const;

/**
 * @param longest  sampled tokens of a rollout that uses its whole budget
 * @throws {ConfigError} settings that contradict each other
 */
export function objectiveSettings(
  config: TrainingConfig,
  algorithm: AlgorithmName,
  preset: TrainingPreset,
  longest: number,
): AlgorithmSettings {
  const { supervised } = algorithmOf(algorithm);
  const given = Object.fromEntries(
    OBJECTIVE_KEYS.filter(
      (key) => config[key] !== null && (!supervised || SUPERVISED_KEYS.includes(key)),
    ).map((key) => [key, config[key]]),
  );
  const estimator = config.klEstimator ?? ESTIMATORS[config.klPlace ?? 'none'];
  const settings = algorithmSettings(algorithm, {
    tokenSumNorm: longest,
    overlong: overlongOf(config, algorithm, longest),
    // A preset's values were made for its own algorithm; beta is the same in all of them.
    ...(preset.algorithm === algorithm ? preset.settings : {}),
    entropyBonus: config.entropyBonus,
    focalGamma: config.focalGamma,
    maxStaleness: config.maxStaleness,
    ...(estimator === null ? {} : { klEstimator: estimator }),
    ...given,
  });
  if (!supervised) refuseContradictions(config, algorithm, settings);
  return settings;
}

/** DAPO's soft penalty on length; other algorithms have it where its size is given. */
function overlongOf(
  config: TrainingConfig,
  algorithm: AlgorithmName,
  longest: number,
): AlgorithmSettings['overlong'] {
  const { overlongTokens, overlongCacheTokens } = config;
  const asked = overlongTokens ?? (algorithm === 'dapo' || overlongCacheTokens !== null ? longest : 0);
  if (asked === 0 || algorithmOf(algorithm).supervised) return null;
  const cacheTokens = overlongCacheTokens ?? Math.ceil(asked / 5);
  if (cacheTokens > asked)
    throw new ConfigError(
      `training.overlongCacheTokens ${cacheTokens}: expected at most overlongTokens, which is ${asked}`,
    );
  return { maxTokens: asked, cacheTokens };
}

function refuseContradictions(
  { klBeta, klTarget, klEstimator }: TrainingConfig,
  algorithm: AlgorithmName,
  settings: AlgorithmSettings,
): void {
  const idle = Object.entries({ klBeta: klBeta === 0 ? null : klBeta, klTarget, klEstimator }).find(
    ([, value]) => value !== null,
  );
  if (settings.klPlace === 'none' && idle !== undefined)
    throw new ConfigError(
      `training.${idle[0]} ${idle[1]}: ${algorithm} charges no KL here; set training.klPlace to reward or loss, or leave it out`,
    );
  if (klTarget !== null && settings.klBeta === 0)
    throw new ConfigError('training.klTarget: klBeta begins at 0 and would stay there; expected above 0');
  if (settings.clipCovLow >= settings.clipCovHigh)
    throw new ConfigError(
      `training.clipCovLow ${settings.clipCovLow}: expected below clipCovHigh, which is ${settings.clipCovHigh}`,
    );
}
