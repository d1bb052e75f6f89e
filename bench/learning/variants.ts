// The runs of the table: three algorithms, the ablation of the mask, of passages a search and of the group's size.

import type { AlgorithmName } from '#searchloop/training/index.js';

export interface Variant {
  readonly name: string;
  readonly about: string;
  readonly algorithm: AlgorithmName;
  readonly groupSize: number;
  readonly topK: number;
  readonly masked: boolean;
  /** Settings of training that differ from those of the tiny world. */
  readonly training?: Readonly<Record<string, unknown>>;
}

const GRPO: Variant = {
  name: 'grpo',
  about: 'GRPO, 5 rollouts a question, 3 passages a search',
  algorithm: 'grpo',
  groupSize: 5,
  topK: 3,
  masked: true,
};

export const VARIANTS: readonly Variant[] = [
  GRPO,
  {
    ...GRPO,
    name: 'ppo',
    about: 'PPO with a critic, 1 rollout a question',
    algorithm: 'ppo',
    groupSize: 1,
  },
  {
    ...GRPO,
    name: 'reinforce',
    about: 'reinforce: group size 1, reward less a running baseline',
    algorithm: 'reinforce',
    groupSize: 1,
  },
  { ...GRPO, name: 'grpo-unmasked', about: 'GRPO, loss on retrieved tokens too', masked: false },
  { ...GRPO, name: 'grpo-group-3', about: 'GRPO, 3 rollouts a question', groupSize: 3 },
  { ...GRPO, name: 'grpo-top-1', about: 'GRPO, 1 passage a search', topK: 1 },
  { ...GRPO, name: 'grpo-top-5', about: 'GRPO, 5 passages a search', topK: 5 },
];

/** Those that must reach the goal. */
export const LEARNERS = ['grpo', 'ppo', 'reinforce'] as const;
