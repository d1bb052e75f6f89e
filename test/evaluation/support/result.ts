import type { QuestionResult } from '../../../src/evaluation/index.js';

/** Of an answer that is right or not, wholly; nothing else of it matters. */
export const questionResult = (
  id: string,
  em: 0 | 1,
  changes: Partial<QuestionResult> = {},
): QuestionResult => ({
  id,
  dataset: 'nq',
  answer: 'x',
  em,
  subEm: em,
  f1: em,
  searches: 1,
  duplicateSearches: 0,
  queries: [],
  validActions: 2,
  invalidActions: 0,
  formatScore: 1,
  goldShown: null,
  promptTokens: 1,
  injectedTokens: 0,
  completionTokens: 1,
  seconds: 1,
  stop: 'answer',
  adapterVersion: 'base',
  ...changes,
});
