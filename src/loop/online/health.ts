// Figures of a step that the collapse guard watches and the trainer does not know.

import type { Tokenizer } from '../../tokenizer/index.js';
import { sampledText, type TrajectoryRecord } from '../../trajectory/index.js';
import { mapBreathing } from '../../util/breathing.js';
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
export async function healthOfBatch(
  { rollouts }: Batch,
  metrics: Readonly<Record<string, number>>,
  tokenizer: Tokenizer,
): Promise<HealthFigures> {
  const read = await mapBreathing(rollouts, ({ record, scores, isCompared }) =>
    readRollout(
      {
        record,
        groupId: record.groupId ?? record.id,
        reward: scores.reward,
        isRight: !isCompared && (scores.em === 1 || scores.reward >= 1),
      },
      tokenizer,
    ),
  );
  return figuresOf(read, metrics);
}

export const healthOf = (
  rollouts: readonly RewardedRollout[],
  metrics: Readonly<Record<string, number>>,
  tokenizer: Tokenizer,
): HealthFigures =>
  figuresOf(
    rollouts.map((rollout) => readRollout(rollout, tokenizer)),
    metrics,
  );

/** What of a rollout's tokens the figures take. */
interface ReadRollout extends Omit<RewardedRollout, 'record'> {
  readonly sampled: number;
  /** Sum over the sampled tokens. */
  readonly logprobs: number;
  readonly repetition: number;
}

function readRollout({ record, ...rewarded }: RewardedRollout, tokenizer: Tokenizer): ReadRollout {
  let sampled = 0;
  let logprobs = 0;
  for (const [t, mask] of record.lossMask.entries())
    if (mask === 1) {
      sampled++;
      logprobs += record.logprobs[t] as number;
    }
  return { ...rewarded, sampled, logprobs, repetition: thinkRepetition(record, tokenizer) };
}

function figuresOf(
  rollouts: readonly ReadRollout[],
  metrics: Readonly<Record<string, number>>,
): HealthFigures {
  const figures: Record<keyof HealthFigures, number | undefined> = {
    entropy: metrics.entropy,
    kl: metrics.kl,
    clipFraction: metrics.clipFraction,
    zeroVarianceShare: wrongShare(rollouts),
    thinkRepetition: mean(rollouts.map(({ repetition }) => repetition)),
    correctLogprob: correctLogprob(rollouts),
    responseTokens: mean(rollouts.map(({ sampled }) => sampled)),
  };
  return Object.fromEntries(Object.entries(figures).filter(([, value]) => value !== undefined));
}

/** Share of groups of several in which nothing is right and all rewards are equal. */
function wrongShare(rollouts: readonly ReadRollout[]): number | undefined {
  const groups = new Map<string, ReadRollout[]>();
  for (const item of rollouts) groups.set(item.groupId, [...(groups.get(item.groupId) ?? []), item]);
  const several = [...groups.values()].filter(({ length }) => length > 1);
  if (several.length === 0) return undefined;
  const dead = several.filter((group) =>
    group.every(({ reward, isRight }) => !isRight && reward === group[0]?.reward),
  );
  return dead.length / several.length;
}

/** Of all sampled tokens of right answers. */
function correctLogprob(rollouts: readonly ReadRollout[]): number | undefined {
  const right = rollouts.filter(({ isRight }) => isRight);
  const sampled = right.reduce((sum, rollout) => sum + rollout.sampled, 0);
  return sampled === 0 ? undefined : right.reduce((sum, { logprobs }) => sum + logprobs, 0) / sampled;
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
