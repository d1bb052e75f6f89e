// Answers many questions at once and keeps each result as it comes, so that a run that was stopped goes on.

import { InvalidInputError } from '../errors.js';
import { isUnaskable, type RolloutRunner } from '../rollout/index.js';
import type { Tokenizer } from '../tokenizer/index.js';
import { derivedSeed } from '../util/derived-seed.js';
import { sha256Hex } from '../util/digest.js';
import type { OnProgress } from '../util/progress.js';
import { eachOf, sideBySide } from '../util/side-by-side.js';
import { type AnsweredQuestion, type AnswerOptions, answerQuestion, unanswered } from './answer-question.js';
import { type Asked, openFolder } from './folder.js';
import type { Question } from './questions.js';
import { answerKey, type QuestionResult } from './result.js';
import { partsOf, type Transcript } from './transcript.js';

export interface EvaluationOptions extends Omit<AnswerOptions, 'runner'> {
  readonly questions: readonly Question[];
  /**
   * Answers to each question, numbered; the sampler of each is seeded by `seed` (0 where absent), the question's id and
   * the number. Absent: one answer, not numbered, with `seed` as it is.
   */
  readonly samples?: number;
  /**
   * Several: one for each slot of an engine in lock-step mode. Question i is then answered by number i modulo their
   * count, a numbered sample by a number that follows from its question's id and its own, whatever the timing, so that
   * the same policy always gives the same results.
   */
  readonly runner: RolloutRunner | readonly RolloutRunner[];
  /** Questions answered at once by one runner; of several, each answers one at a time. */
  readonly concurrency: number;
  /** Folder for results, transcripts and settings; absent: nothing is written, nothing resumed. */
  readonly output?: string;
  /** All that shapes the answers; results in `output` with other settings are refused. */
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly onProgress?: OnProgress;
  /** Hears why questions are asked again, or cannot be asked. */
  readonly onNote?: (line: string) => void;
}

/**
 * Results of all questions, in their order; of each its samples in theirs. Lines of `output` are taken for what was
 * answered before and has not changed since. A question that cannot be asked counts as one without an answer.
 * @throws {InvalidInputError} several samples of a greedy policy, or none
 * @throws {IntegrityError} `output` was begun with other settings; the message holds both digests
 * @throws {UnavailableError} searches fail and do not come back; {CancelledError} the signal fired; what was answered is kept
 */
export async function evaluate(options: EvaluationOptions): Promise<QuestionResult[]> {
  const { output, settings = {}, onProgress, signal } = options;
  const asked = askedOf(options);
  const folder = output === undefined ? null : await openFolder(output, { ...options, asked, settings });
  const results = new Map(folder?.known);
  const wanted = asked.filter((one) => !results.has(keyOf(one)));
  const report = (): void =>
    onProgress?.({
      stage: 'evaluate',
      done: asked.length - wanted.length + finished,
      total: asked.length,
      unit: options.samples === undefined ? 'questions' : 'samples',
    });
  let finished = 0;
  const work = async (one: Asked, runner: RolloutRunner): Promise<void> => {
    const answered = await answer(one, { ...options, runner });
    await folder?.append(answered.result, transcriptOf(one, answered, options.tokenizer));
    results.set(keyOf(one), answered.result);
    finished += 1;
    report();
  };
  try {
    report();
    const lines = linesOf(options, asked, wanted).map(
      ({ runner, waiting, atOnce }) =>
        (stop: AbortSignal) =>
          eachOf(waiting, atOnce, (one) => work(one, runner), stop),
    );
    await sideBySide(lines, signal);
  } finally {
    await folder?.close();
  }
  return asked.map((one) => results.get(keyOf(one)) as QuestionResult);
}

const keyOf = ({ question: { id }, sample }: Asked): string => answerKey({ id, sample });

function askedOf({ questions, samples, temperature = 0 }: EvaluationOptions): Asked[] {
  if (samples === undefined) return questions.map((question) => ({ question }));
  if (!Number.isInteger(samples) || samples < 1)
    throw new InvalidInputError(`expected one sample or more, got ${samples}`, 'samples');
  if (temperature === 0 && samples > 1)
    throw new InvalidInputError(
      `${samples} samples of a greedy policy are one answer ${samples} times; expected a temperature above 0`,
      'temperature',
    );
  return questions.flatMap((question) =>
    Array.from({ length: samples }, (_, sample) => ({ question, sample })),
  );
}

async function answer(
  { question, sample }: Asked,
  options: Omit<EvaluationOptions, 'runner'> & Pick<AnswerOptions, 'runner'>,
): Promise<AnsweredQuestion> {
  if (sample === undefined) return answerIfAskable(question, options);
  const seed = derivedSeed(options.seed ?? 0, 'evaluate', question.id, sample);
  const { record, result } = await answerIfAskable(question, { ...options, seed });
  return { record, result: { ...result, sample } };
}

async function answerIfAskable(
  question: Question,
  options: AnswerOptions & Pick<EvaluationOptions, 'onNote'>,
): Promise<AnsweredQuestion> {
  try {
    return await answerQuestion(question, options);
  } catch (error) {
    if (!isUnaskable(error)) throw error;
    options.onNote?.(`question ${question.id} cannot be asked, and counts as unanswered: ${error.message}`);
    return unanswered(question);
  }
}

/** What waits for a runner. */
interface Line {
  readonly runner: RolloutRunner;
  readonly waiting: readonly Asked[];
  readonly atOnce: number;
}

function linesOf(
  { runner, concurrency }: EvaluationOptions,
  asked: readonly Asked[],
  wanted: readonly Asked[],
): Line[] {
  if ('run' in runner) return [{ runner, waiting: wanted, atOnce: concurrency }];
  const places = new Map(asked.map((one, i) => [keyOf(one), slotOf(one, i) % runner.length]));
  return runner.map((one, slot) => ({
    runner: one,
    waiting: wanted.filter((item) => places.get(keyOf(item)) === slot),
    atOnce: 1,
  }));
}

/** A sample keeps its slot when more samples, or more questions, are asked for. */
const slotOf = ({ question, sample }: Asked, place: number): number =>
  sample === undefined ? place : Number.parseInt(sha256Hex(question.id).slice(0, 8), 16) + sample;

function transcriptOf(
  { question: { id, dataset, question, goldenAnswers }, sample }: Asked,
  { record, result: { answer, em } }: AnsweredQuestion,
  tokenizer: Tokenizer,
): Transcript {
  const parts = record === null ? [] : partsOf(record, tokenizer);
  return { id, sample, dataset, question, goldenAnswers: [...goldenAnswers], answer, em, parts };
}
