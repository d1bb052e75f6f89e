// The body of POST /retrieve as Search-R1's trainers send it.

import { z } from 'zod';
import { wellFormed } from '../../util/well-formed.js';
import { invalidField } from '../openai/request-error.js';
import { optional, parseFields } from '../openai/schema/fields.js';

export interface RetrieveLimits {
  readonly maxQueries: number;
  /** Passages of a search when the body names no number. */
  readonly defaultTopK: number;
}

/** Characters of one query. */
const LONGEST_QUERY = 8192;
/** Passages of one answer, all queries together. */
const MOST_PASSAGES = 65_536;

const retrieveFields = z.object({
  queries: z.array(z.unknown()).min(1),
  topk: optional(z.number().int().min(1).max(100)),
  return_scores: optional(z.boolean()),
});

export interface RetrieveBody {
  readonly queries: readonly string[];
  readonly topk: number;
  readonly returnScores: boolean;
}

/** @throws {RequestError} naming the first wrong field */
export function parseRetrieveBody(value: unknown, limits: RetrieveLimits): RetrieveBody {
  const {
    queries,
    topk = limits.defaultTopK,
    return_scores: returnScores,
  } = parseFields(retrieveFields, value);
  if (queries.length > limits.maxQueries)
    throw invalidField(
      'queries',
      `queries: expected at most ${limits.maxQueries}, received ${queries.length}`,
    );
  if (queries.length * topk > MOST_PASSAGES)
    throw invalidField('topk', `topk: expected at most ${MOST_PASSAGES} passages for all queries together`);
  const texts = queries.map((query, index) => {
    if (typeof query === 'string' && query.length <= LONGEST_QUERY) return wellFormed(query);
    const param = `queries[${index}]`;
    throw invalidField(param, `${param}: expected a string of at most ${LONGEST_QUERY} characters`);
  });
  return { queries: texts, topk, returnScores: returnScores ?? false };
}
