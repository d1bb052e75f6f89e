// Settings of the loop's steps.

import type { Config } from '../../config/index.js';
import type { EngineInfo } from '../../engine/index.js';
import { type AlgorithmName, type RunSettings, runSettings } from '../../training/index.js';

/**
 * As those of `train`, but rollouts have the sizes that users' have, up to the engine's window, where `training` says
 * none: what is trained is what the gate judges and users get. A preset's smaller ones would cut searches and turns short,
 * and its shorter sequences would leave out just the long rollouts.
 * @throws {ConfigError} settings that contradict each other, or that the algorithm has no use for
 */
export function loopRunSettings(
  { training, loop, rollout }: Pick<Config, 'training' | 'loop' | 'rollout'>,
  { maxSequenceTokens }: Pick<EngineInfo, 'maxSequenceTokens'>,
): RunSettings {
  const { actionBudget, turnTokens, observationTokens, passageTokens } = rollout;
  return runSettings(training, loop.algorithm as AlgorithmName, {
    actionBudget,
    turnTokens,
    observationTokens,
    passageTokens,
    sequenceTokens: maxSequenceTokens,
  });
}
