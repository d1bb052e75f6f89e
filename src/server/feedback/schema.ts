// The body of POST /v1/feedback. Unknown keys are refused: a label that is misspelt must not be lost in silence.

import { z } from 'zod';
import { wellFormed } from '../../util/well-formed.js';
import { invalidField } from '../openai/request-error.js';
import { goldAnswers } from '../openai/schema/chat.js';
import { optional, parseFields } from '../openai/schema/fields.js';

const LONGEST_COMMENT = 16_384;
const STARS = 5;

const answerId = z
  .string()
  .min(1)
  .max(256)
  .regex(/^[^\0]*$/, 'expected no NUL character');

const fields = z.strictObject({
  id: answerId.describe('Answer: the id of the completion, or `answer_id` of one of its choices.'),
  reward: optional(z.number().min(-1).max(1)).describe('How good it is.'),
  golden_answers: optional(goldAnswers).describe('Right answers to its question.'),
  rating: optional(z.union([z.enum(['up', 'down']), z.number().int().min(1).max(STARS)])).describe(
    'A thumb, or 1 to 5 stars.',
  ),
  preferred_over: optional(answerId).describe('Another answer to the same question that is worse.'),
  comment: optional(z.string().max(LONGEST_COMMENT).transform(wellFormed)),
});

export interface FeedbackBody {
  readonly id: string;
  readonly reward: number | null;
  readonly goldAnswers: readonly string[] | null;
  /** In [0, 1]. */
  readonly rating: number | null;
  readonly preferredOver: string | null;
  readonly comment: string | null;
}

/** @throws {RequestError} naming the first field that is wrong */
export function parseFeedbackBody(value: unknown): FeedbackBody {
  const { id, reward, golden_answers, rating, preferred_over, comment } = parseFields(fields, value);
  const given = [reward, golden_answers, rating, preferred_over, comment];
  if (given.every((item) => item === undefined))
    throw invalidField(
      null,
      'expected at least one of reward, golden_answers, rating, preferred_over and comment',
    );
  return {
    id,
    reward: reward ?? null,
    goldAnswers: golden_answers ?? null,
    rating: rating === undefined ? null : ratingOf(rating),
    preferredOver: preferred_over ?? null,
    comment: comment ?? null,
  };
}

function ratingOf(rating: 'up' | 'down' | number): number {
  if (typeof rating === 'number') return (rating - 1) / (STARS - 1);
  return rating === 'up' ? 1 : 0;
}
