// The rollouts of one step: which questions, how many samples of each, their rewards, and what of them is trained on.

import type { Question } from '../../evaluation/index.js';
import type { RewardedRecord } from '../../reward/index.js';
import {
  derivedSeed,
  itemsBetween,
  type RunningBaselines,
  type RunSettings,
  selectGroups,
  type TrainingSequence,
} from '../../training/index.js';
import type { TrajectoryRecord } from '../../trajectory/index.js';
import type { RolloutJob } from './lock-step-rollouts.js';

export interface ScoredRollout {
  readonly question: Question;
  readonly record: TrajectoryRecord;
  readonly scores: RewardedRecord;
}

export interface BatchParts {
  readonly settings: RunSettings;
  readonly questions: readonly Question[];
  roll(jobs: readonly RolloutJob[]): Promise<TrajectoryRecord[]>;
  score(record: TrajectoryRecord, question: Question): RewardedRecord;
}

/** Rounds of further questions for a batch whose groups are to differ. */
const MOST_ROUNDS = 4;

/**
 * Rolls out `batchSequences / groupSize` questions, `groupSize` times each. Where the algorithm samples dynamically,
 * groups of equal outcomes are replaced by further questions, a few rounds at most.
 *
 * @param step  from 1; with the run's seed it decides questions and samples
 */
export async function sampleBatch(parts: BatchParts, step: number): Promise<ScoredRollout[]> {
  const { settings } = parts;
  const wanted = Math.max(1, Math.floor(settings.batchSequences / settings.groupSize));
  const first = await rollQuestions(parts, questionsOf(parts, step, wanted), `s${step}`);
  if (!settings.dynamicSampling) return first;
  const all = [...first];
  const outcomes = () =>
    selectGroups(
      all.map(({ record, scores }) => ({ groupId: record.groupId as string, reward: scores.em })),
      wanted,
    );
  for (let round = 1; round < MOST_ROUNDS && outcomes().missingGroups > 0; round++) {
    const further = furtherQuestions(parts, step, round, outcomes().missingGroups);
    all.push(...(await rollQuestions(parts, further, `s${step}r${round}`)));
  }
  const { kept } = outcomes();
  // Nothing differs: the step then has no signal, and its figures say so.
  return kept.length === 0 ? first : kept.map((i) => all[i] as ScoredRollout);
}

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
): Promise<ScoredRollout[]> {
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
  return records.map((record, i) => {
    const { question } = jobs[i] as RolloutJob;
    return { question, record, scores: parts.score(record, question) };
  });
}

/** A rollout as a step takes it. */
export function trainingSequence(
  { record, scores, question }: ScoredRollout,
  version: string,
  baselines: RunningBaselines,
): TrainingSequence {
  return {
    id: record.id,
    tokenIds: Int32Array.from(record.tokenIds),
    lossMask: Uint8Array.from(record.lossMask),
    environmentMask: Uint8Array.from(record.origin, (origin) => (origin === 'environment' ? 1 : 0)),
    rollout: {
      groupId: record.groupId as string,
      reward: scores.reward,
      baseline: baselines.valueOf(question.dataset),
      version,
      staleness: 0,
      engineLogprobs: Float32Array.from(record.logprobs),
      searches: record.searches.length,
      validActions: record.validActions,
      invalidActions: record.invalidActions,
    },
  };
}

/** Figures of a batch that the trainer does not know. */
export function batchFigures(batch: readonly ScoredRollout[]): Record<string, number> {
  const mean = (value: (item: ScoredRollout) => number): number =>
    batch.reduce((sum, item) => sum + value(item), 0) / batch.length;
  return {
    exactMatch: mean(({ scores }) => scores.em),
    f1: mean(({ scores }) => scores.f1),
    formatScore: mean(({ scores }) => scores.formatScore),
    answered: mean(({ record }) => (record.stop === 'answer' ? 1 : 0)),
    turns: mean(({ record }) => record.turnStarts.length),
  };
}
