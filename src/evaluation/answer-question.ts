// One question answered as evaluation does it: by the rollout runner, greedy, no answer forced.

import { RAW_POLICY } from '../engine/index.js';
import { CancelledError } from '../errors.js';
import type { Passage, Retriever } from '../retrieval/index.js';
import { scoreRecord } from '../reward/index.js';
import {
  FailedSearch,
  FailedSearches,
  type MethodName,
  type RolloutEvent,
  type RolloutRunner,
} from '../rollout/index.js';
import type { Tokenizer } from '../tokenizer/index.js';
import type { TrajectoryRecord } from '../trajectory/index.js';
import { type Question, questionDigest } from './questions.js';
import type { QuestionResult } from './result.js';
import { holdsAnswer, isYesNo, shownPart } from './shown.js';

export interface AnswerOptions {
  readonly runner: RolloutRunner;
  /** What the runner searches; null where it searches nothing. */
  readonly retriever: Pick<Retriever, 'search'> | null;
  /** Between looks whether searches that failed work again. */
  readonly searchPausesMs?: readonly number[];
  /** The policy's own. */
  readonly tokenizer: Tokenizer;
  readonly method: MethodName;
  /** Adapter name or version; null is the base model, absent the live one. */
  readonly adapter?: string | null;
  /** 0, the default, is greedy. */
  readonly temperature?: number;
  readonly seed?: number;
  readonly actionBudget?: number;
  readonly topK?: number;
  readonly signal?: AbortSignal;
}

export interface AnsweredQuestion {
  readonly result: QuestionResult;
  /** null where the question cannot be asked. */
  readonly record: TrajectoryRecord | null;
}

/**
 * The answer, none of whose searches met an outage: it is begun again once searches work.
 * @throws what the runner throws; {SearchesAwayError} searches do not come back; {CancelledError} the signal fired
 */
export async function answerQuestion(question: Question, options: AnswerOptions): Promise<AnsweredQuestion> {
  const { retriever, searchPausesMs, signal = new AbortController().signal } = options;
  const failed = new FailedSearches(retriever, searchPausesMs);
  for (;;) {
    try {
      return await attempt(question, options, failed);
    } catch (error) {
      if (!(error instanceof FailedSearch)) throw error;
      await failed.after(error, signal);
    }
  }
}

/** @throws {FailedSearch} */
async function attempt(
  question: Question,
  options: AnswerOptions,
  failed: FailedSearches,
): Promise<AnsweredQuestion> {
  const { runner, tokenizer, method, temperature = 0, ...rest } = options;
  const { adapter, seed, actionBudget, topK, signal } = rest;
  const begun = performance.now();
  const passages: Passage[] = [];
  const rollout = runner.run({
    method,
    messages: [{ role: 'user', content: question.question }],
    sampling: { ...RAW_POLICY, temperature },
    forceAnswer: false,
    ...(adapter === undefined ? {} : { adapter }),
    ...(seed === undefined ? {} : { seed }),
    ...(actionBudget === undefined ? {} : { actionBudget }),
    ...(topK === undefined ? {} : { topK }),
    ...(signal === undefined ? {} : { signal }),
  });
  let done: Extract<RolloutEvent, { type: 'done' }> | null = null;
  for await (const event of rollout) {
    if (event.type === 'search.results') {
      failed.check(event);
      passages.push(...event.passages);
    } else if (event.type === 'done') done = event;
  }
  if (done === null || done.finish === 'cancelled') throw new CancelledError();
  const seconds = (performance.now() - begun) / 1000;
  const { record, usage } = done;
  return { record, result: resultOf(question, { record, usage, passages, seconds, tokenizer }) };
}

/** What counts for a question that cannot be asked: no answer, and nothing done for one. */
export const unanswered = (question: Question): AnsweredQuestion => ({
  record: null,
  result: {
    id: question.id,
    dataset: question.dataset,
    questionDigest: questionDigest(question),
    answer: null,
    em: 0,
    subEm: 0,
    f1: 0,
    searches: 0,
    duplicateSearches: 0,
    queries: [],
    validActions: 0,
    invalidActions: 0,
    formatScore: 0,
    goldShown: null,
    promptTokens: 0,
    injectedTokens: 0,
    completionTokens: 0,
    seconds: 0,
    stop: 'length',
    adapterVersion: '',
  },
});

interface Finished {
  readonly record: TrajectoryRecord;
  readonly usage: Extract<RolloutEvent, { type: 'done' }>['usage'];
  readonly passages: readonly Passage[];
  readonly seconds: number;
  readonly tokenizer: Tokenizer;
}

function resultOf(question: Question, finished: Finished): QuestionResult {
  const { record, usage, seconds, tokenizer } = finished;
  const { em, subEm, f1, formatScore } = scoreRecord(record, tokenizer, question.goldenAnswers);
  return {
    id: question.id,
    dataset: question.dataset,
    questionDigest: questionDigest(question),
    answer: record.answer,
    em,
    subEm,
    f1,
    searches: record.searches.length,
    duplicateSearches: record.duplicateSearches,
    queries: record.searches.map(({ query }) => query),
    validActions: record.validActions,
    invalidActions: record.invalidActions,
    formatScore,
    goldShown: goldShown(question, finished),
    promptTokens: usage.promptTokens - usage.injectedTokens,
    injectedTokens: usage.injectedTokens,
    completionTokens: usage.completionTokens,
    seconds,
    stop: record.stop,
    adapterVersion: record.versions[0]?.adapterVersion ?? '',
  };
}

function goldShown({ goldenAnswers }: Question, { record, passages, tokenizer }: Finished): boolean | null {
  if (record.searches.length === 0 || isYesNo(goldenAnswers)) return null;
  const observed = record.searches
    .map(({ observation: [start, end] }) => tokenizer.decode(record.tokenIds.slice(start, end)))
    .join('\n');
  return passages.some(({ title, text }) => {
    const shown = shownPart(text, observed);
    return shown !== '' && holdsAnswer(`${title}\n${shown}`, goldenAnswers);
  });
}
