// What is kept of one question: small enough for a line, complete enough for every table.

import { z } from 'zod';
import { trajectoryRecordSchema } from '../trajectory/index.js';

export const questionResult = z.strictObject({
  id: z.string(),
  /** Number of the sample, from 0; absent where the question was answered once, greedily. */
  sample: z.int().min(0).optional(),
  dataset: z.string(),
  /** Of what was asked and what counts as right; results of earlier versions have none. */
  questionDigest: z.string().optional(),
  /** null where the rollout ended without one. */
  answer: z.string().nullable(),
  em: z.union([z.literal(0), z.literal(1)]),
  subEm: z.union([z.literal(0), z.literal(1)]),
  f1: z.number(),
  searches: z.number(),
  duplicateSearches: z.number(),
  queries: z.array(z.string()),
  validActions: z.number(),
  invalidActions: z.number(),
  /** Format score of SSRL. */
  formatScore: z.number(),
  /** A gold answer stands in what was shown of the passages; null for yes/no and where nothing was searched. */
  goldShown: z.boolean().nullable(),
  promptTokens: z.number(),
  injectedTokens: z.number(),
  completionTokens: z.number(),
  seconds: z.number(),
  stop: trajectoryRecordSchema.shape.stop,
  adapterVersion: z.string(),
});

export type QuestionResult = z.infer<typeof questionResult>;

/** What tells one answer from another: question and sample. */
export const answerKey = ({
  id,
  sample,
}: {
  readonly id: string;
  readonly sample?: number | undefined;
}): string => (sample === undefined ? id : JSON.stringify([id, sample]));

/** Results by question, in the order in which questions first come. */
export function byQuestion(results: readonly QuestionResult[]): Map<string, QuestionResult[]> {
  const groups = new Map<string, QuestionResult[]>();
  for (const result of results) {
    const group = groups.get(result.id);
    if (group === undefined) groups.set(result.id, [result]);
    else group.push(result);
  }
  return groups;
}
