import { z } from 'zod';
import { FileFormatError, NotFoundError } from '../errors.js';
import { canonicalJson, sha256Hex } from '../util/digest.js';
import { checkJson } from '../util/json-file.js';
import { readJsonLines } from '../util/json-lines.js';

/** A question with its gold answers. */
export interface Question {
  readonly id: string;
  /** Name of the set it comes from, such as `nq`. */
  readonly dataset: string;
  readonly question: string;
  /** Any one of them is right. */
  readonly goldenAnswers: readonly string[];
  /** Titles of the pages that the answer needs; empty where the set does not say. */
  readonly supportingTitles: readonly string[];
}

/** Digest of what is asked and what counts as right: equal ids do not say that these are equal. */
export const questionDigest = ({
  dataset,
  question,
  goldenAnswers,
}: Pick<Question, 'dataset' | 'question' | 'goldenAnswers'>): string =>
  sha256Hex(canonicalJson({ dataset, question, golden_answers: goldenAnswers }));

/** A line of a question file; other fields are left out. */
const questionLine = z.object({
  id: z.string().min(1),
  dataset: z.string().min(1).default('questions'),
  question: z.string().min(1),
  golden_answers: z.array(z.string()).min(1),
  supporting_titles: z.array(z.string()).default([]),
});

/**
 * Questions of a JSONL file in file order; see docs/evaluation.md for its fields.
 * @throws {NotFoundError} no such file
 * @throws {FileFormatError} naming file, line and field, also for an id that comes twice
 */
export async function readQuestions(path: string): Promise<Question[]> {
  const questions = new Map<string, Question>();
  try {
    for await (const { value, line } of readJsonLines(path)) {
      const question = parseQuestion(value, `${path}, line ${line}`);
      if (questions.has(question.id))
        throw new FileFormatError(`${path}, line ${line}: id "${question.id}" came before`);
      questions.set(question.id, question);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new NotFoundError(`no question file at ${path}`, { cause: error });
    throw error;
  }
  return [...questions.values()];
}

function parseQuestion(value: unknown, where: string): Question {
  const { id, dataset, question, golden_answers, supporting_titles } = checkJson(value, questionLine, where);
  return { id, dataset, question, goldenAnswers: golden_answers, supportingTitles: supporting_titles };
}
