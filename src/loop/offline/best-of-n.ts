// Rejection sampling: several rollouts of each question, the best one kept as a trajectory to learn from if it is good
// enough. A file of the same form as a warm start, for `train sft`.

import { z } from 'zod';
import { CancelledError, IntegrityError, InvalidInputError } from '../../errors.js';
import type { Question } from '../../evaluation/index.js';
import type { RewardedRecord } from '../../reward/index.js';
import type { Tokenizer } from '../../tokenizer/index.js';
import { bestOfN } from '../../training/index.js';
import { audit, type TrajectoryRecord } from '../../trajectory/index.js';
import { derivedSeed } from '../../util/derived-seed.js';
import { readJsonFileIfAny, writeJsonFile } from '../../util/json-file.js';
import { openJsonLines, writeJsonLines } from '../../util/json-lines.js';
import type { OnProgress } from '../../util/progress.js';
import { aloneOn } from '../warm-start/alone.js';
import { readWarmStart, type WarmStartLine } from '../warm-start/line.js';
import type { LockStepRollouts, RolloutJob } from './lock-step-rollouts.js';

export interface BestOfNOptions {
  readonly questions: readonly Question[];
  /** The policy to sample from is in use. */
  readonly rollouts: LockStepRollouts;
  readonly tokenizer: Tokenizer;
  score(record: TrajectoryRecord, question: Question): RewardedRecord;
  /** Rollouts of a question. */
  readonly samples: number;
  /** Worse rollouts are never kept. */
  readonly minReward: number;
  readonly seed: number;
  /** File of JSON lines; beside it `.progress.json` says how far it is. */
  readonly output: string;
  /** Of everything that decides the outcome. */
  readonly settingsDigest: string;
  readonly onProgress?: OnProgress;
  readonly onNote?: (line: string) => void;
  readonly signal?: AbortSignal;
}

export interface BestOfNSummary {
  readonly questions: number;
  readonly trajectories: number;
}

const progressShape = z.strictObject({ done: z.int().min(0), settingsDigest: z.string() });

/** Questions between two marks of progress. */
const QUESTIONS_A_ROUND = 16;

/**
 * Run again, it goes on where it ended, with the same outcome. Questions that cannot be asked are left out.
 * @throws {InvalidInputError} no samples are asked for, or no question can be asked
 * @throws {IntegrityError} the file was begun with other settings, or holds trajectories of another origin
 * @throws {CancelledError} the signal fired
 */
export async function sampleBest(options: BestOfNOptions): Promise<BestOfNSummary> {
  const { samples } = options;
  if (!(samples >= 1)) throw new InvalidInputError(`expected at least one sample, got ${samples}`, 'samples');
  return aloneOn(options.output, options, async () =>
    goOn({ ...options, questions: await options.rollouts.askable(options.questions, options) }),
  );
}

async function goOn(options: BestOfNOptions): Promise<BestOfNSummary> {
  const { questions, output, signal, onProgress } = options;
  let done = await questionsDone(options);
  let trajectories = await keepFinished(options, done);
  while (done < questions.length) {
    if (signal?.aborted) throw new CancelledError();
    const round = questions.slice(done, done + QUESTIONS_A_ROUND);
    const best = await bestOf(options, round);
    const writer = await openJsonLines(output);
    for (const line of best) await writer.append(line);
    await writer.close();
    trajectories += best.length;
    done += round.length;
    const progress = { done, settingsDigest: options.settingsDigest };
    await writeJsonFile(progressFile(output), progress);
    onProgress?.({ stage: 'best of n', done, total: questions.length, unit: 'questions' });
  }
  return { questions: done, trajectories };
}

const progressFile = (output: string): string => `${output}.progress.json`;

async function questionsDone({ output, settingsDigest }: BestOfNOptions): Promise<number> {
  const path = progressFile(output);
  const found = await readJsonFileIfAny(path, progressShape);
  if (found === null) return 0;
  if (found.settingsDigest !== settingsDigest)
    throw new IntegrityError(
      `${output} was begun with other settings: its digest is ${found.settingsDigest}, that of this run ${settingsDigest}; name another file`,
    );
  return found.done;
}

/**
 * Takes back the lines of a round that was killed.
 * @returns how many lines stay
 */
async function keepFinished(
  { questions, output, settingsDigest }: BestOfNOptions,
  done: number,
): Promise<number> {
  const lines = await readWarmStart(output).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  if (lines.some((line) => line.settingsDigest !== settingsDigest))
    throw new IntegrityError(
      `${output} holds trajectories that this run did not make; name another file, or remove it`,
    );
  const finished = new Set(questions.slice(0, done).map(({ id }) => id));
  const kept = lines.filter(({ questionId }) => finished.has(questionId));
  await writeJsonLines(output, kept);
  return kept.length;
}

async function bestOf(options: BestOfNOptions, round: readonly Question[]): Promise<WarmStartLine[]> {
  const { rollouts, tokenizer, samples, seed, minReward, settingsDigest, signal } = options;
  const jobs = round.flatMap((question) =>
    Array.from(
      { length: samples },
      (_, sample): RolloutJob => ({
        id: `best-${question.id}-${sample}`,
        groupId: question.id,
        question,
        seed: derivedSeed(seed, 'best-of-n', question.id, sample),
      }),
    ),
  );
  const records = await rollouts.roll(jobs, signal === undefined ? {} : { signal });
  const candidates = records.map((record, i) => ({
    groupId: record.groupId as string,
    // A record that breaks an invariant is never learnt from.
    reward:
      audit(record, tokenizer).length > 0
        ? Number.NEGATIVE_INFINITY
        : options.score(record, (jobs[i] as RolloutJob).question).reward,
    sampledTokens: record.lossMask.reduce<number>((sum, mask) => sum + mask, 0),
  }));
  return bestOfN(candidates, { minReward }).map((i) => {
    const { question } = jobs[i] as RolloutJob;
    return {
      questionId: question.id,
      dataset: question.dataset,
      goldenAnswers: question.goldenAnswers,
      kind: 'best-of-n',
      settingsDigest,
      record: records[i] as TrajectoryRecord,
    };
  });
}
