// The rollouts of one step: which questions, how many samples of each, their rewards, and what of them is trained on.

import type { Question } from '../../evaluation/index.js';
import type { RewardedRecord } from '../../reward/index.js';
import {
  type RunningBaselines,
  type RunSettings,
  selectGroups,
  type TrainingSequence,
} from '../../training/index.js';
import type { TrajectoryRecord } from '../../trajectory/index.js';
import { derivedSeed } from '../../util/derived-seed.js';
import { itemsBetween } from '../../util/random.js';
import type { RolloutJob } from './lock-step-rollouts.js';
import { type Rejected, refuseRejected } from './rejected.js';
import type { Sampler } from './sampling-version.js';

export interface ScoredRollout {
  readonly question: Question;
  readonly record: TrajectoryRecord;
  readonly scores: RewardedRecord;
  /** A logged answer of any version that users had: judged by weights and KL, not by its age. */
  readonly isLogged?: boolean;
}

export interface BatchParts {
  readonly settings: RunSettings;
  readonly questions: readonly Question[];
  roll(jobs: readonly RolloutJob[]): Promise<TrajectoryRecord[]>;
  /** Why a record must not be trained on: it is left out, as if it had not been sampled; null: it is sound. */
  faultOf(record: TrajectoryRecord): string | null;
  score(record: TrajectoryRecord, question: Question): RewardedRecord;
}

export interface SampledBatch {
  /** What is trained on. */
  readonly batch: readonly ScoredRollout[];
  /** All sound rollouts, those of replaced groups too: what the figures of the step are of. */
  readonly sampled: readonly ScoredRollout[];
  /** Rollouts that were not sound. */
  readonly quarantined: number;
  /** Share of the groups whose outcomes are all equal; null where they are not told apart here. */
  readonly equalShare: number | null;
}

/** Rounds of further questions for a batch whose groups are to differ. */
const MOST_ROUNDS = 4;

/**
 * Rolls out `batchSequences / groupSize` questions, `groupSize` times each. Where the algorithm samples dynamically,
 * groups of equal outcomes are replaced by further questions, a few rounds at most.
 *
 * @param step  from 1; with the run's seed it decides questions and samples
 * @throws {IntegrityError} more than `maxRejectedShare` of the rollouts are not sound
 */
export async function sampleBatch(parts: BatchParts, step: number): Promise<SampledBatch> {
  const { settings } = parts;
  const wanted = groupsOfStep(settings);
  const first = await rollQuestions(parts, questionsOf(parts, step, wanted), `s${step}`);
  const { rollouts } = first;
  const sampled = [...rollouts];
  const rejected = [...first.rejected];
  const refuse = (): void =>
    refuseRejected(
      rejected,
      sampled.length + rejected.length,
      settings,
      `then the run goes on with --resume, from step ${step - 1}`,
    );
  refuse();
  if (!settings.dynamicSampling || settings.groupSize === 1)
    return { batch: rollouts, sampled, quarantined: rejected.length, equalShare: null };
  for (let round = 1; round < MOST_ROUNDS; round++) {
    const { missingGroups } = outcomesOf(sampled, wanted);
    if (missingGroups === 0) break;
    const questions = furtherQuestions(parts, step, round, missingGroups);
    const further = await rollQuestions(parts, questions, `s${step}r${round}`);
    sampled.push(...further.rollouts);
    rejected.push(...further.rejected);
    refuse();
  }
  const { kept, equalGroups } = outcomesOf(sampled, wanted);
  const groups = new Set(sampled.map(({ record }) => record.groupId)).size;
  return {
    // Nothing differs: the step then has no signal, and its figures say so.
    batch: kept.length === 0 ? rollouts : kept.map((i) => sampled[i] as ScoredRollout),
    sampled,
    quarantined: rejected.length,
    equalShare: groups === 0 ? null : equalGroups / groups,
  };
}

/** Questions of a step, each with a whole group of rollouts. */
export const groupsOfStep = ({
  batchSequences,
  groupSize,
}: Pick<RunSettings, 'batchSequences' | 'groupSize'>): number =>
  Math.max(1, Math.floor(batchSequences / groupSize));

const outcomesOf = (rollouts: readonly ScoredRollout[], wanted: number) =>
  selectGroups(
    rollouts.map(({ record, scores }) => ({ groupId: record.groupId as string, reward: scores.reward })),
    wanted,
  );

/** The questions of a step: shuffled passes, as a loader without a state gives them. */
function questionsOf({ settings, questions }: BatchParts, step: number, count: number): Question[] {
  const from = (step - 1) * count;
  const chosen = itemsBetween(from, from + count, questions.length, derivedSeed(settings.seed, 'questions'));
  return chosen.map((i) => questions[i] as Question);
}

function furtherQuestions(
  { settings, questions }: BatchParts,
  step: number,
  round: number,
  count: number,
): Question[] {
  const seed = derivedSeed(settings.seed, 'further', step, round);
  return itemsBetween(0, count, questions.length, seed).map((i) => questions[i] as Question);
}

async function rollQuestions(
  parts: BatchParts,
  questions: readonly Question[],
  name: string,
): Promise<{ readonly rollouts: readonly ScoredRollout[]; readonly rejected: readonly Rejected[] }> {
  const { groupSize, seed } = parts.settings;
  const jobs = questions.flatMap((question, q) =>
    Array.from({ length: groupSize }, (_, sample) => ({
      id: `${name}q${q}n${sample}`,
      // Not the question's text or id: the same question twice in a step is two groups.
      groupId: `${name}q${q}`,
      question,
      seed: derivedSeed(seed, 'rollout', name, q, sample),
    })),
  );
  const records = await parts.roll(jobs);
  const rejected: Rejected[] = [];
  const rollouts = records.flatMap((record, i) => {
    const reason = parts.faultOf(record);
    if (reason !== null) {
      rejected.push({ id: record.id, reason });
      return [];
    }
    const { question } = jobs[i] as RolloutJob;
    return [{ question, record, scores: parts.score(record, question) }];
  });
  return { rollouts, rejected };
}

/** A trajectory as a step takes it that learns it as it is. */
export const givenSequence = (record: TrajectoryRecord): TrainingSequence => ({
  id: record.id,
  tokenIds: Int32Array.from(record.tokenIds),
  lossMask: Uint8Array.from(record.lossMask),
  environmentMask: retrievedMask(record),
  rollout: null,
});

/** A rollout as a step takes it. */
export function trainingSequence(
  { record, scores, question }: ScoredRollout,
  sampler: Sampler,
  baselines: RunningBaselines,
): TrainingSequence {
  return {
    ...givenSequence(record),
    rollout: {
      groupId: record.groupId as string,
      reward: scores.reward,
      baseline: baselines.valueOf(question.dataset),
      ...sampler,
      engineLogprobs: Float32Array.from(record.logprobs),
      searches: record.searches.length,
      validActions: record.validActions,
      invalidActions: record.invalidActions,
    },
  };
}

/**
 * [T], 1 on the observations that a search brought: their passages, with the tags around them, which a record does not
 * tell apart. Words of the environment's own (a corrective observation, a failed search) are none of them.
 */
function retrievedMask({ tokenIds, observations }: TrajectoryRecord): Uint8Array {
  const mask = new Uint8Array(tokenIds.length);
  for (const { kind, range } of observations) if (kind === 'search') mask.fill(1, ...range);
  return mask;
}

/** Figures of all sound rollouts of a step; without any there is nothing to say. */
export function batchFigures({
  sampled,
  quarantined,
  equalShare,
}: Omit<SampledBatch, 'batch'>): Record<string, number> {
  const counts = { rollouts: sampled.length, quarantined };
  if (sampled.length === 0) return counts;
  const total = (value: (item: ScoredRollout) => number): number =>
    sampled.reduce((sum, item) => sum + value(item), 0);
  const mean = (value: (item: ScoredRollout) => number): number => total(value) / sampled.length;
  const valid = total(({ record }) => record.validActions);
  const actions = valid + total(({ record }) => record.invalidActions);
  return {
    ...counts,
    reward: mean(({ scores }) => scores.reward),
    exactMatch: mean(({ scores }) => scores.em),
    f1: mean(({ scores }) => scores.f1),
    formatScore: mean(({ scores }) => scores.formatScore),
    answered: mean(({ record }) => (record.stop === 'answer' ? 1 : 0)),
    turns: mean(({ record }) => record.turnStarts.length),
    searches: mean(({ record }) => record.searches.length),
    sampledTokens: mean(({ record }) => record.lossMask.filter((mask) => mask === 1).length),
    sequenceTokens: mean(({ record }) => record.tokenIds.length),
    ...(actions === 0 ? {} : { validShare: valid / actions }),
    ...(equalShare === null ? {} : { zeroVarianceShare: equalShare }),
  };
}
