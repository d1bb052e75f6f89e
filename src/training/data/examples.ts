// Given trajectories for supervised training: a JSONL file, one record a line.

import { existsSync } from 'node:fs';
import { z } from 'zod';
import { InvalidInputError, NotFoundError } from '../../errors.js';
import type { Tokenizer } from '../../tokenizer/index.js';
import { sha256File } from '../../util/digest.js';
import { readJsonLines } from '../../util/json-lines.js';

/** One given trajectory. Arrays have length T. */
export interface Example {
  readonly id: string;
  readonly tokenIds: Int32Array;
  /** 1 on tokens that are learnt; entry 0 is 0. */
  readonly lossMask: Uint8Array;
  /** 1 on tokens that a search brought. */
  readonly environmentMask: Uint8Array;
}

export interface ExampleFile {
  readonly examples: readonly Example[];
  /** Of each example's question, where the line names it. */
  readonly questionIds: readonly (string | null)[];
  /** sha256 of the file. */
  readonly digest: string;
}

/** The part of a trajectory record that is needed; whatever else it holds is left alone. */
const recordSchema = z.object({
  id: z.string().optional(),
  tokenIds: z.array(z.number().int().min(0)).min(2),
  lossMask: z.array(z.union([z.literal(0), z.literal(1)])),
  origin: z.array(z.enum(['prompt', 'policy', 'policyInformation', 'environment'])).optional(),
  /** Of another shape, they are somebody else's. */
  observations: z
    .array(z.object({ range: z.tuple([z.int().min(0), z.int().min(0)]), text: z.string() }))
    .optional()
    .catch(undefined),
});

/** A line is a record, or holds one beside what is known of its question. */
const lineSchema = z.union([
  z
    .object({ record: recordSchema, questionId: z.string().optional() })
    .transform(({ record, questionId }) => ({ ...record, questionId })),
  recordSchema.extend({ questionId: z.string().optional() }),
]);

export interface ExampleLimits {
  /** Token ids lie below it. */
  readonly vocabSize: number;
  /** Longer trajectories are refused. */
  readonly maxTokens: number;
  /** Of the model that is trained; a trajectory that another one wrote is refused. */
  readonly tokenizer: Pick<Tokenizer, 'decode'>;
}

/**
 * Reads trajectories: `tokenIds`, `lossMask` and, where they stand there, `origin` and `observations`, as a trajectory record has them, and the
 * `questionId` of the line.
 *
 * @throws {NotFoundError} no such file
 * @throws {FileFormatError} a line is not JSON
 * @throws {InvalidInputError} naming the line: arrays that do not fit, nothing to learn, too long, of another tokenizer
 */
export async function readExamples(path: string, limits: ExampleLimits): Promise<ExampleFile> {
  if (!existsSync(path)) throw new NotFoundError(`${path} does not exist`);
  const examples: Example[] = [];
  const questionIds: (string | null)[] = [];
  for await (const { value, line } of readJsonLines(path)) {
    const { example, questionId } = parseExample(value, `${path}, line ${line}`, limits);
    examples.push(example);
    questionIds.push(questionId);
  }
  if (examples.length === 0) throw new InvalidInputError(`${path}: no trajectory`, 'data');
  return { examples, questionIds, digest: await sha256File(path) };
}

function parseExample(
  value: unknown,
  where: string,
  { vocabSize, maxTokens, tokenizer }: ExampleLimits,
): { readonly example: Example; readonly questionId: string | null } {
  const parsed = lineSchema.safeParse(value);
  if (!parsed.success) throw new InvalidInputError(`${where}: ${z.prettifyError(parsed.error)}`, 'data');
  const { id, questionId = null, tokenIds, lossMask, origin, observations } = parsed.data;
  const length = tokenIds.length;
  const refuseIf = (fault: boolean, message: string): void => {
    if (fault) throw new InvalidInputError(`${where}: ${message}`, 'data');
  };
  refuseIf(lossMask.length !== length, `${length} tokenIds, but ${lossMask.length} in lossMask`);
  refuseIf((origin?.length ?? length) !== length, `${length} tokenIds, but ${origin?.length} in origin`);
  refuseIf(length > maxTokens, `${length} tokens, the limit is ${maxTokens}`);
  const largest = tokenIds.reduce((most, token) => Math.max(most, token));
  refuseIf(largest >= vocabSize, `token ${largest}, but the vocabulary has ${vocabSize}`);
  refuseIf(lossMask[0] === 1, 'lossMask: nothing predicts the first token');
  refuseIf(!lossMask.includes(1), 'lossMask: nothing to learn');
  const wrong = origin?.findIndex((from, t) => (from === 'policy') !== (lossMask[t] === 1)) ?? -1;
  refuseIf(wrong >= 0, `token ${wrong}: lossMask is ${lossMask[wrong]}, origin "${origin?.[wrong]}"`);
  const foreign = observations?.find(
    ({ range, text }) => tokenizer.decode(tokenIds.slice(...range)) !== text,
  );
  refuseIf(
    foreign !== undefined,
    `tokens ${foreign?.range.join(' to ')} are not, in the tokenizer of this model, the text that the line has for them: it was recorded with another one`,
  );
  const example = {
    id: id ?? where,
    tokenIds: Int32Array.from(tokenIds),
    lossMask: Uint8Array.from(lossMask),
    environmentMask: Uint8Array.from(tokenIds, (_, t) => (origin?.[t] === 'environment' ? 1 : 0)),
  };
  return { example, questionId };
}
