// One question answered as evaluation does it: by the rollout runner, greedy, no answer forced.

import { RAW_POLICY } from '../engine/index.js';
import { CancelledError } from '../errors.js';
import type { Passage } from '../retrieval/index.js';
import { scoreRecord } from '../reward/index.js';
import type { MethodName, RolloutEvent, RolloutRunner } from '../rollout/index.js';
import type { Tokenizer } from '../tokenizer/index.js';
import type { TrajectoryRecord } from '../trajectory/index.js';
import { type Question, questionDigest } from './questions.js';
import type { QuestionResult } from './result.js';
import { holdsAnswer, isYesNo, shownPart } from './shown.js';

export interface AnswerOptions {
  readonly runner: RolloutRunner;
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
  readonly record: TrajectoryRecord;
}

/** @throws what the engine throws, and {CancelledError} when the signal fires */
export async function answerQuestion(question: Question, options: AnswerOptions): Promise<AnsweredQuestion> {
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
    if (event.type === 'search.results') passages.push(...event.passages);
    else if (event.type === 'done') done = event;
  }
  if (done === null || done.finish === 'cancelled') throw new CancelledError();
  const seconds = (performance.now() - begun) / 1000;
  const { record, usage } = done;
  return { record, result: resultOf(question, { record, usage, passages, seconds, tokenizer }) };
}

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
