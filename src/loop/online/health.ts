// Figures of a step that the collapse guard watches and the trainer does not know.

import type { Tokenizer } from '../../tokenizer/index.js';
import { sampledText, type TrajectoryRecord } from '../../trajectory/index.js';
import type { Batch } from './batch.js';
import type { HealthFigures } from './collapse-guard.js';

export interface RewardedRollout {
  readonly record: TrajectoryRecord;
  readonly groupId: string;
  readonly reward: number;
  readonly isRight: boolean;
}

const GRAM = 4;

/** @param metrics  of the trainer's step */
export const healthOfBatch = (
  { rollouts }: Batch,
  metrics: Readonly<Record<string, number>>,
  tokenizer: Tokenizer,
): HealthFigures =>
  healthOf(
    rollouts.map(({ record, scores, isCompared }) => ({
      record,
      groupId: record.groupId ?? record.id,
      reward: scores.reward,
      isRight: !isCompared && (scores.em === 1 || scores.reward >= 1),
    })),
    metrics,
    tokenizer,
  );

export function healthOf(
  rollouts: readonly RewardedRollout[],
  metrics: Readonly<Record<string, number>>,
  tokenizer: Tokenizer,
): HealthFigures {
  const figures: Record<keyof HealthFigures, number | undefined> = {
    entropy: metrics.entropy,
    kl: metrics.kl,
    clipFraction: metrics.clipFraction,
    zeroVarianceShare: wrongShare(rollouts),
    thinkRepetition: mean(rollouts.map(({ record }) => thinkRepetition(record, tokenizer))),
    correctLogprob: correctLogprob(rollouts),
    responseTokens: mean(rollouts.map(({ record }) => record.lossMask.filter((mask) => mask === 1).length)),
  };
  return Object.fromEntries(Object.entries(figures).filter(([, value]) => value !== undefined));
}

/** Share of groups of several in which nothing is right and all rewards are equal. */
function wrongShare(rollouts: readonly RewardedRollout[]): number | undefined {
  const groups = new Map<string, RewardedRollout[]>();
  for (const item of rollouts) groups.set(item.groupId, [...(groups.get(item.groupId) ?? []), item]);
  const several = [...groups.values()].filter(({ length }) => length > 1);
  if (several.length === 0) return undefined;
  const dead = several.filter((group) =>
    group.every(({ reward, isRight }) => !isRight && reward === group[0]?.reward),
  );
  return dead.length / several.length;
}

function correctLogprob(rollouts: readonly RewardedRollout[]): number | undefined {
  const values = rollouts
    .filter(({ isRight }) => isRight)
    .flatMap(({ record }) => record.logprobs.filter((_, t) => record.lossMask[t] === 1));
  return mean(values);
}

/** Share of the word 4-grams in a rollout's think blocks that stood there before; 0 where there are none. */
export function thinkRepetition(record: TrajectoryRecord, tokenizer: Tokenizer): number {
  const sampled = record.tokenIds.filter((_, t) => record.lossMask[t] === 1);
  const text = sampledText(sampled, tokenizer);
  const thoughts = [...text.matchAll(/<think>(.*?)(?:<\/think>|$)/gsu)].map((match) => match[1] ?? '');
  const words = thoughts.join(' ').split(/\s+/u).filter(Boolean);
  const grams = words.slice(GRAM - 1).map((_, i) => words.slice(i, i + GRAM).join(' '));
  return grams.length === 0 ? 0 : 1 - new Set(grams).size / grams.length;
}

const mean = (values: readonly number[]): number | undefined =>
  values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
