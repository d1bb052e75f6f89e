// Settings of training. What is null comes from the preset and from the algorithm.

import { z } from 'zod';

const int = (min: number, max: number) => z.number().int().min(min).max(max);
const positive = z.number().positive();
const share = z.number().min(0).max(1);

/** A setting of the preset (and, in part, of the algorithm) unless it is given. */
const preset = <T extends z.ZodType>(schema: T) => schema.nullable().default(null);

export const training = z.strictObject({
  preset: z
    .enum(['lora-small', 'paper-ppo', 'paper-grpo', 'paper-ssrl'])
    .default('lora-small')
    .describe('Values of all settings here that are null; in the loop without its sizes of rollouts.'),
  seed: int(0, Number.MAX_SAFE_INTEGER).default(0).describe('Of shuffles, rollouts and fresh weights.'),
  threads: int(0, 256).default(0).describe('Threads of the trainer; 0 is the number of cores.'),
  niceness: int(0, 19).default(19).describe('Priority of the trainer (Linux); 19 yields to everyone.'),
  precision: z
    .enum(['q8', 'q4', 'fp32'])
    .nullable()
    .default(null)
    .describe('Base weights as an engine of this precision has them; null is engine.precision.'),
  trained: preset(z.enum(['lora', 'whole'])).describe('What is trained: an adapter or all weights.'),
  rank: preset(int(1, 1024)).describe('Rank of the adapter.'),
  alpha: preset(z.number().positive()).describe('Its scale is alpha / rank.'),
  learningRate: preset(z.number().min(0)).describe('Of the policy.'),
  valueLearningRate: preset(z.number().min(0)).describe('Of the critic.'),
  warmupShare: preset(share).describe('Share of the steps in which the rate rises.'),
  valueWarmupShare: preset(share).describe('The same of the critic.'),
  schedule: preset(z.enum(['constant', 'cosine'])).describe('Learning rate after the warm-up.'),
  weightDecay: preset(z.number().min(0)).describe(
    'Of AdamW; null is 0.01 where all weights are trained, 0 for an adapter.',
  ),
  maxGradientNorm: preset(z.number().positive()).describe('Longer gradients are scaled down to it.'),
  steps: preset(int(1, 10_000_000)).describe('Steps of a run; null: the epochs over the data.'),
  epochs: preset(int(1, 10_000)).describe('Passes over the data; steps wins.'),
  batchSequences: preset(int(1, 65_536)).describe('Sequences of a step.'),
  miniBatchSequences: preset(int(1, 65_536)).describe('Sequences of one optimizer update.'),
  batchEpochs: int(1, 64).default(1).describe('Passes over the rollouts of a step.'),
  groupSize: preset(int(1, 256)).describe('Rollouts of a question in a step.'),
  microBatchTokens: int(16, 65_536)
    .default(2048)
    .describe(
      'Most tokens that run at once, in all lanes together: bounds memory and the time to stop. A longer sequence runs alone.',
    ),
  lanes: int(1, 64)
    .default(2)
    .describe(
      'Micro-batches that run side by side and share threads, tokens and memory; whole weights use one.',
    ),
  activationMebibytes: int(0, 1_048_576)
    .default(2048)
    .describe('Memory for activations kept for the backward run; what does not fit is computed again.'),
  maxSequenceTokens: preset(int(16, 131_072)).describe(
    'Longest trajectory that is trained on: sft refuses longer ones, rollouts of training end there, the loop leaves longer ones out. null in the loop: as long as the engine holds.',
  ),
  aggregation: preset(z.enum(['seq-mean-token-mean', 'token-mean', 'seq-mean-token-sum-norm'])).describe(
    'How token losses become one number.',
  ),
  tokenSumNorm: preset(positive).describe(
    'Tokens that seq-mean-token-sum-norm divides by; null is the longest response.',
  ),
  klPlace: preset(z.enum(['none', 'reward', 'loss'])).describe(
    'Where the KL to the reference policy is charged.',
  ),
  klEstimator: preset(z.enum(['k1', 'k2', 'k3'])).describe('How it is estimated from a sampled token.'),
  klBeta: preset(z.number().min(0)).describe('Weight of the KL to the reference policy.'),
  klTarget: preset(z.number().positive()).describe(
    'Mean KL a token that klBeta follows; null keeps klBeta as it is.',
  ),
  klHorizon: int(1, 100_000_000).default(10_000).describe('Rollouts over which klBeta follows klTarget.'),
  reference: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Adapter folder of the reference policy; null is the policy that the run starts from.'),
  clipEpsilonLow: preset(z.number().min(0)).describe('Lower clip of the ratio.'),
  clipEpsilonHigh: preset(z.number().min(0)).describe('Upper clip of the ratio.'),
  dualClip: preset(z.number().gt(1)).describe(
    'Bound of a clipped loss where the advantage is negative, in multiples of it; null: none.',
  ),
  cispoMax: preset(positive).describe('In cispo, upper bound of the ratio.'),
  klCovShare: preset(share).describe('In kl-cov, share of the tokens that are held near the old policy.'),
  klCovCoefficient: preset(z.number().min(0)).describe('In kl-cov, how strongly they are held.'),
  clipCovShare: preset(share).describe('In clip-cov, share of the tokens that get no gradient.'),
  clipCovLow: preset(z.number()).describe('In clip-cov, least covariance of such a token.'),
  clipCovHigh: preset(z.number()).describe('In clip-cov, largest covariance of such a token.'),
  gamma: preset(share).describe('Discount.'),
  gaeLambda: preset(share).describe('Of generalised advantage estimation.'),
  valueClip: preset(positive).describe("In ppo, how far the critic's values move for free."),
  groupOfOne: preset(z.enum(['running-baseline', 'reward'])).describe(
    'Advantage of a single rollout of a question: the reward less a running baseline, or the reward itself.',
  ),
  equalGroups: preset(z.enum(['skip', 'keep'])).describe(
    'Groups of equal rewards: left out, or kept so that the KL acts on them.',
  ),
  overlongTokens: preset(int(0, 1_000_000)).describe(
    'Sampled tokens at which the soft penalty on length is whole; 0 switches it off, null is what the algorithm does.',
  ),
  overlongCacheTokens: preset(int(1, 1_000_000)).describe(
    'Tokens over which that penalty grows; null is a fifth of overlongTokens.',
  ),
  importanceCap: preset(positive).describe('Upper bound of the weights trainer / engine.'),
  targetKl: preset(z.number().positive()).describe('Further epochs on a batch end beyond 1.5 times this.'),
  lldsWeight: preset(z.number().min(0)).describe(
    'Weight of llds, which keeps the likelihood of good rollouts from falling; null is 0.',
  ),
  echoWeight: preset(z.number().min(0)).describe(
    'Weight of the cross-entropy on what a search brought, the opposite of the mask; null is 0.',
  ),
  entropyBonus: z.number().min(0).default(0).describe('Weight of the entropy.'),
  focalGamma: z
    .number()
    .min(0)
    .default(0)
    .describe('In sft and of demonstrations, power of 1 - p in the weight of a token; 0 weighs all alike.'),
  maxStaleness: int(0, 1000)
    .default(4)
    .describe('Rollouts older than this many versions, or of none that is kept, are dropped.'),
  maxRejectedShare: share
    .default(0.5)
    .describe('Training ends where a larger share of the rollouts of a step fails the audit.'),
  rewardRule: z
    .enum(['outcome', 'outcome+format', 'outcome+format-score', 'f1', 'sub-exact-match'])
    .default('outcome')
    .describe(
      'Reward of a rollout: exact match, that with its format, words in common, or a gold answer as a part of it.',
    ),
  formatWeight: z.number().min(0).max(1).default(0.1).describe('Part of the format in it.'),
  searchCost: z.number().min(0).default(0).describe('Taken off the reward for each search.'),
  actionBudget: preset(int(1, 64)).describe('rollout.actionBudget in training; null in the loop: the same.'),
  turnTokens: preset(int(1, 32_768)).describe('rollout.turnTokens in training; null in the loop: the same.'),
  observationTokens: preset(int(16, 32_768)).describe(
    'rollout.observationTokens in training; null in the loop: the same.',
  ),
  passageTokens: preset(int(8, 32_768)).describe(
    'rollout.passageTokens in training; null in the loop: the same.',
  ),
  rolloutSequences: int(1, 256).default(16).describe('Rollouts that run side by side.'),
  checkpointEvery: preset(int(1, 1_000_000)).describe('Steps between checkpoints.'),
  keepCheckpoints: int(1, 10_000).default(3).describe('Last checkpoints that are kept, beside the best one.'),
  validateEvery: preset(int(0, 1_000_000)).describe(
    'Steps between validations, the best of which the run gives; the last step is validated too; 0 is never. Not in sft.',
  ),
  validationQuestions: int(1, 1_000_000).default(100).describe('Questions of a validation.'),
});
