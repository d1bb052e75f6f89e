// Settings of the online loop.

import { z } from 'zod';

const int = (min: number, max: number) => z.number().int().min(min).max(max);

export const loop = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe(
      'Learn from labelled answers while the server is idle, and publish what the gate lets through.',
    ),
  mode: z
    .enum(['replay', 'logged'])
    .default('replay')
    .describe('Roll labelled questions out again, or learn from explored answers as they were given.'),
  algorithm: z
    .enum([
      'grpo',
      'ppo',
      'dr-grpo',
      'dapo',
      'rloo',
      'reinforce++',
      'cispo',
      'gspo',
      'kl-cov',
      'clip-cov',
      'reinforce',
    ])
    .default('grpo')
    .describe('Of the steps; all else of a step stands under training. ppo needs the mode replay.'),
  seed: int(0, Number.MAX_SAFE_INTEGER).default(0).describe('Of questions, rollouts and updates.'),
  minQuestions: int(1, 1_000_000)
    .default(16)
    .describe('Labelled questions that may be trained on, below which no step begins.'),
  demonstrations: int(0, 10_000)
    .default(0)
    .describe(
      'Further labelled questions of a step that are answered by rule where a search finds the gold answer, and learned so; 0: none.',
    ),
  demonstrationWeight: z
    .number()
    .gt(0)
    .max(100)
    .default(1)
    .describe('Of the cross-entropy on them, beside the loss of rollouts.'),
  keyShare: z
    .number()
    .min(0)
    .max(1)
    .default(0.25)
    .describe(
      'Most of a step, and of the outcomes that a watch counts, whose labels come from one key; an admin has no limit.',
    ),
  exploreShare: z
    .number()
    .min(0)
    .max(1)
    .default(0.1)
    .describe('In mode logged: share of the kept answers that are sampled at temperature 1, and marked.'),
  idleMs: int(0, 600_000)
    .default(250)
    .describe('Time without a question after which the loop rolls out and trains.'),
  patienceMs: int(0, 86_400_000)
    .nullable()
    .default(null)
    .describe(
      'Longest wait for such a time; then it goes on beside the users, with a quarter of the slots. null waits.',
    ),
  pollMs: int(10, 600_000).default(2000).describe('Pause between two looks at what is new.'),
  gateEvery: int(1, 10_000).default(1).describe('Steps after which a candidate is judged.'),
  gateQuestions: int(300, 100_000)
    .default(300)
    .describe('Fewest questions of a verdict; below it the gate waits.'),
  gateData: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('File of questions with gold answers (JSONL) to judge by; they are never trained on.'),
  gateMargin: z.number().gt(0).max(0.2).default(0.03).describe('Loss of exact match that must be ruled out.'),
  gateAlpha: z
    .number()
    .gt(0)
    .max(0.2)
    .default(0.05)
    .describe('Probability of a wrong publication, over all candidates judged by the same questions.'),
  confirmEvery: int(0, 1000)
    .default(5)
    .describe('Publications after which questions that no candidate has met must confirm; 0 is never.'),
  maxKl: z
    .number()
    .gt(0)
    .default(0.2)
    .describe('Nats a token between a candidate and the start of the loop.'),
  maxValidityLoss: z
    .number()
    .min(0)
    .max(1)
    .default(0.02)
    .describe('By so much the share of valid actions may fall.'),
  maxRefusals: int(1, 1000)
    .default(5)
    .describe('Refusals in a row after which training goes back to the live version.'),
  canaryShare: z
    .number()
    .min(0)
    .max(0.5)
    .default(0)
    .describe('Share of the requests that try a new version before it goes live; 0 lets it go live at once.'),
  watchMinPairs: int(1, 1_000_000)
    .default(50)
    .describe(
      'Labelled answers of each version before a new one may be rolled back for what users say; one key gives at most loop.keyShare of them.',
    ),
  watchMaxPairs: int(1, 1_000_000)
    .default(400)
    .describe('After so many it is kept; not below loop.watchMinPairs.'),
  watchMargin: z
    .number()
    .min(0)
    .max(1)
    .default(0.03)
    .describe('Loss of mean outcome that is no reason to go back.'),
  watchAlpha: z
    .number()
    .gt(0)
    .max(0.5)
    .default(0.05)
    .describe('Probability that a good version is rolled back.'),
  keepVersions: int(2, 1000).default(8).describe('Published versions that stay on disk, to go back to.'),
  guardWarmSteps: int(1, 1000)
    .default(4)
    .describe('Steps from which the collapse guard learns what is normal, before it compares.'),
  guardPatience: int(1, 100).default(2).describe('Steps in a row out of bounds that pause the loop.'),
  guardMinEntropy: z
    .number()
    .min(0)
    .max(1)
    .default(0.2)
    .describe('Least entropy of the sampled tokens, as a share of its normal.'),
  guardMaxKl: z
    .number()
    .gt(0)
    .default(0.5)
    .describe('Nats a token between the rollouts of a step and the start of the loop.'),
  guardMaxClip: z.number().min(0).max(1).default(0.5).describe('Share of tokens whose ratio is clipped.'),
  guardMaxWrong: z
    .number()
    .min(0)
    .max(1)
    .default(0.9)
    .describe('Share of groups without a right answer, where it is also 0.3 above its normal.'),
  guardMaxRepetition: z
    .number()
    .min(0)
    .max(1)
    .default(0.3)
    .describe('Rise of the share of repeated words in think blocks above its normal.'),
  guardMaxForgetting: z
    .number()
    .gt(0)
    .default(1)
    .describe('Nats a token by which the likelihood of right answers may fall below its normal.'),
  guardMaxLength: z
    .number()
    .gt(1)
    .default(3)
    .describe('Length of rollouts as a multiple of its normal, or one part in so many of it.'),
  webhooks: z
    .array(z.url())
    .default([])
    .describe('Addresses that hear of versions published, refused and rolled back, and of pauses.'),
});
