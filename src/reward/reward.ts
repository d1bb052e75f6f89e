// The reward of a rollout (Search-R1 eq. 4; SSRL eq. 7), and what it is made of.

import type { TrainingConfig } from '../config/index.js';
import type { Tokenizer } from '../tokenizer/index.js';
import type { TrajectoryRecord } from '../trajectory/index.js';
import { formatParts, formatScore } from './format-score.js';
import { compareAnswer } from './match.js';

/**
 * `outcome`: EM. `outcome+format` (SSRL eq. 7): right and well-formed 1, right and ill-formed 1 - w, wrong and
 * well-formed w, else 0. `outcome+format-score` (SSRL's released code): (1 - w) EM + w s. `f1`: words in common with a
 * gold answer. `sub-exact-match`: 1 where a gold answer is part of the answer; a long answer that names many things earns it too.
 */
export const REWARD_RULES = [
  'outcome',
  'outcome+format',
  'outcome+format-score',
  'f1',
  'sub-exact-match',
] as const;
export type RewardRule = (typeof REWARD_RULES)[number];

export interface RewardSettings {
  readonly rule: RewardRule;
  /** w, in [0, 1]; the paper's lambda. */
  readonly formatWeight: number;
  /** Taken off for each search; 0 is the papers' reward. */
  readonly searchCost: number;
}

export const DEFAULT_REWARD: RewardSettings = { rule: 'outcome', formatWeight: 0.1, searchCost: 0 };

/** The rule that training goes by. */
export const rewardSettings = ({
  rewardRule: rule,
  formatWeight,
  searchCost,
}: Pick<TrainingConfig, 'rewardRule' | 'formatWeight' | 'searchCost'>): RewardSettings => ({
  rule,
  formatWeight,
  searchCost,
});

/** What a reward is made of. */
export interface RewardParts {
  readonly em: 0 | 1;
  readonly subEm: 0 | 1;
  readonly f1: number;
  readonly formatScore: number;
  readonly wellFormed: boolean;
  readonly searches: number;
}

export interface RewardedRecord extends RewardParts {
  readonly reward: number;
}

/** r = rule(match, format) - searchCost * searches. */
export function rewardOf(parts: RewardParts, settings: RewardSettings = DEFAULT_REWARD): number {
  const { formatWeight: w, searchCost } = settings;
  return outcomeOf(parts, settings.rule, w) - searchCost * parts.searches;
}

function outcomeOf(parts: RewardParts, rule: RewardRule, w: number): number {
  const { em, subEm, f1, formatScore: s, wellFormed } = parts;
  switch (rule) {
    case 'outcome':
      return em;
    case 'f1':
      return f1;
    case 'sub-exact-match':
      return subEm;
    case 'outcome+format-score':
      return (1 - w) * em + w * s;
    case 'outcome+format':
      if (em === 1) return wellFormed ? 1 : 1 - w;
      return wellFormed ? w : 0;
  }
}

/**
 * Scores a finished rollout against gold answers.
 * @param tokenizer  the policy's own; sampled text is read with it
 */
export function scoreRecord(
  record: TrajectoryRecord,
  tokenizer: Tokenizer,
  golds: readonly string[],
  settings: RewardSettings = DEFAULT_REWARD,
): RewardedRecord {
  const { answer } = record;
  const { score, wellFormed } = formatScore(formatParts(record, tokenizer));
  const parts: RewardParts = {
    ...compareAnswer(answer, golds),
    formatScore: score,
    wellFormed,
    searches: record.searches.length,
  };
  return { ...parts, reward: rewardOf(parts, settings) };
}
