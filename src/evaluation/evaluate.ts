// Answers many questions at once and keeps each result as it comes, so that a run that was stopped goes on.

import { CancelledError } from '../errors.js';
import type { RolloutRunner } from '../rollout/index.js';
import type { Tokenizer } from '../tokenizer/index.js';
import type { OnProgress } from '../util/progress.js';
import { sideBySide } from '../util/side-by-side.js';
import { type AnsweredQuestion, type AnswerOptions, answerQuestion } from './answer-question.js';
import { openFolder } from './folder.js';
import type { Question } from './questions.js';
import type { QuestionResult } from './result.js';
import { partsOf, type Transcript } from './transcript.js';

export interface EvaluationOptions extends Omit<AnswerOptions, 'runner'> {
  readonly questions: readonly Question[];
  /**
   * Several: one for each slot of an engine in lock-step mode. Question i is then answered by number i modulo their
   * count, whatever the timing, so that the same policy always gives the same results.
   */
  readonly runner: RolloutRunner | readonly RolloutRunner[];
  /** Questions answered at once by one runner; of several, each answers one at a time. */
  readonly concurrency: number;
  /** Folder for results, transcripts and settings; absent: nothing is written, nothing resumed. */
  readonly output?: string;
  /** All that shapes the answers; results in `output` with other settings are refused. */
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly onProgress?: OnProgress;
  /** Hears why questions are asked again. */
  readonly onNote?: (line: string) => void;
  readonly onAnswered?: (answered: AnsweredQuestion) => void;
}

/**
 * Results of all questions, in their order. Lines of `output` are taken for questions that were answered before and
 * have not changed since.
 * @throws {IntegrityError} `output` was begun with other settings; the message holds both digests
 * @throws {CancelledError} the signal fired; what was answered is kept
 */
export async function evaluate(options: EvaluationOptions): Promise<QuestionResult[]> {
  const { questions, output, settings = {}, onProgress, signal } = options;
  const folder = output === undefined ? null : await openFolder(output, { ...options, settings });
  const results = new Map(folder?.known);
  const wanted = questions.filter(({ id }) => !results.has(id));
  const report = (): void =>
    onProgress?.({
      stage: 'evaluate',
      done: questions.length - wanted.length + finished,
      total: questions.length,
      unit: 'questions',
    });
  let finished = 0;
  const work = async ({ runner, waiting }: Line, stop: AbortSignal): Promise<void> => {
    for (
      let question = waiting.shift();
      question !== undefined && !stop.aborted;
      question = waiting.shift()
    ) {
      if (signal?.aborted) throw new CancelledError();
      const answered = await answerQuestion(question, { ...options, runner });
      await folder?.append(answered.result, transcriptOf(question, answered, options.tokenizer));
      results.set(question.id, answered.result);
      options.onAnswered?.(answered);
      finished += 1;
      report();
    }
  };
  try {
    report();
    await sideBySide(linesOf(options, wanted).map((line) => (stop) => work(line, stop)));
  } finally {
    await folder?.close();
  }
  return questions.map(({ id }) => results.get(id) as QuestionResult);
}

/** Questions that wait for a runner; those that share one share the list. */
interface Line {
  readonly runner: RolloutRunner;
  readonly waiting: Question[];
}

/** One for each question that is answered at once. */
function linesOf({ runner, questions, concurrency }: EvaluationOptions, wanted: readonly Question[]): Line[] {
  if ('run' in runner) {
    const line = { runner, waiting: [...wanted] };
    return Array.from({ length: Math.min(concurrency, wanted.length) }, () => line);
  }
  const places = new Map(questions.map(({ id }, i) => [id, i % runner.length]));
  return runner.map((one, slot) => ({
    runner: one,
    waiting: wanted.filter(({ id }) => places.get(id) === slot),
  }));
}

function transcriptOf(
  { id, dataset, question, goldenAnswers }: Question,
  { record, result: { answer, em } }: AnsweredQuestion,
  tokenizer: Tokenizer,
): Transcript {
  const parts = partsOf(record, tokenizer);
  return { id, dataset, question, goldenAnswers: [...goldenAnswers], answer, em, parts };
}
