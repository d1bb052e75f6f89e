// reward/: how good an answer and its rollout are: exact match, format, majority, and the rewards made of them.
// Texts, gold answers and records in; numbers out.
// Never searches, never samples, never knows a policy's weights.

export { type FormatPart, type FormatScore, formatParts, formatScore } from './format-score.js';
export { type GradedItem, type GradeOptions, type GradeSource, gradeAll, ruleText } from './grade.js';
export { majorityAnswer, majorityWinners } from './majority.js';
export {
  type AnswerFingerprint,
  exactMatch,
  fingerprintMatch,
  fingerprintOf,
} from './match.js';
export {
  DEFAULT_REWARD,
  REWARD_RULES,
  type RewardedRecord,
  type RewardSettings,
  rewardOf,
  rewardSettings,
  scoreRecord,
} from './reward.js';
export { ScorerAwayError } from './scorers/ask-scorer.js';
export { createHttpScorer } from './scorers/http-scorer.js';
export { createJudge } from './scorers/judge.js';
export { loadModuleScorer } from './scorers/module-scorer.js';
export { openScorers, type Scorers } from './scorers/open-scorers.js';
export type { ScoredItem, Scorer } from './scorers/scorer.js';
