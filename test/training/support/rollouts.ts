import { algorithmSettings } from '../../../src/training/algorithms/registry.js';
import type { AlgorithmSettings } from '../../../src/training/algorithms/settings.js';
import type { StepWork, TrainingSequence } from '../../../src/training/index.js';
import { derivedSeed } from '../../../src/util/derived-seed.js';
import { randomNumbers } from '../../../src/util/random.js';
import { madeExamples } from './examples.js';

/** Made-up rollouts in groups of `groupSize`; the reward counts how often token 0 was sampled. */
export function madeRollouts(
  groups: number,
  groupSize: number,
  vocabSize: number,
  version: string,
  seed = 5,
): TrainingSequence[] {
  const random = randomNumbers(derivedSeed(seed, 'engine'));
  return madeExamples(groups * groupSize, vocabSize, seed).map((example, i) => {
    const sampled = example.tokenIds.filter((_, t) => example.lossMask[t] === 1);
    return {
      ...example,
      rollout: {
        groupId: `group-${Math.floor(i / groupSize)}`,
        reward: sampled.filter((token) => token === 0).length / sampled.length,
        version,
        staleness: 0,
        engineLogprobs: Float32Array.from(example.tokenIds, () => -1.5 - random()),
        searches: i % 3,
        validActions: 2,
        invalidActions: i % 2,
      },
    };
  });
}

export function stepWork(
  algorithm: string,
  sequences: readonly TrainingSequence[],
  more: Partial<StepWork> & { readonly settings?: Partial<AlgorithmSettings> } = {},
): StepWork {
  const { settings, ...rest } = more;
  const rule = { learningRate: 0.05, weightDecay: 0, maxGradientNorm: 1 };
  return {
    step: 1,
    version: 'v0',
    algorithm: algorithmSettings(algorithm, { tokenSumNorm: 64, ...settings }),
    supervised: algorithm === 'sft',
    sequences,
    demonstrationWeight: 1,
    batchEpochs: 1,
    miniBatchSequences: sequences.length,
    policy: rule,
    value: rule,
    microBatchTokens: 64,
    seed: 11,
    reference: null,
    versions: {},
    ...rest,
  };
}
