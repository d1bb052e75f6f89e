// Given trajectories for supervised training: a JSONL file, one record a line.

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { InvalidInputError, NotFoundError } from '../../errors.js';
import { sha256File } from '../../util/digest.js';

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
  /** sha256 of the file. */
  readonly digest: string;
}

/** The part of a trajectory record that is needed; whatever else it holds is left alone. */
const lineSchema = z.object({
  id: z.string().optional(),
  tokenIds: z.array(z.number().int().min(0)).min(2),
  lossMask: z.array(z.union([z.literal(0), z.literal(1)])),
  origin: z.array(z.enum(['prompt', 'policy', 'policyInformation', 'environment'])).optional(),
});

/**
 * Reads trajectories: `tokenIds` and `lossMask`, and where it stands there `origin`, as a trajectory record has them.
 *
 * @param vocabSize  token ids lie below it
 * @param maxTokens  longer trajectories are refused
 * @throws {NotFoundError} no such file
 * @throws {InvalidInputError} naming the line: not JSON, arrays that do not fit, nothing to learn, too long
 */
export async function readExamples(
  path: string,
  limits: { readonly vocabSize: number; readonly maxTokens: number },
): Promise<ExampleFile> {
  const examples: Example[] = [];
  let line = 0;
  const input = createReadStream(path);
  try {
    for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      line++;
      if (text.trim() !== '') examples.push(parseExample(text, `${path}:${line}`, limits));
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new NotFoundError(`${path} does not exist`);
    throw error;
  }
  if (examples.length === 0) throw new InvalidInputError(`${path}: no trajectory`, 'data');
  return { examples, digest: await sha256File(path) };
}

function parseExample(
  text: string,
  where: string,
  limits: { readonly vocabSize: number; readonly maxTokens: number },
): Example {
  const refuse = (message: string): never => {
    throw new InvalidInputError(`${where}: ${message}`, 'data');
  };
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return refuse(`not JSON: ${(error as Error).message}`);
  }
  const parsed = lineSchema.safeParse(json);
  if (!parsed.success) return refuse(z.prettifyError(parsed.error));
  const { id, tokenIds, lossMask, origin } = parsed.data;
  const length = tokenIds.length;
  if (lossMask.length !== length) refuse(`${length} tokenIds, but ${lossMask.length} in lossMask`);
  if (origin !== undefined && origin.length !== length)
    refuse(`${length} tokenIds, but ${origin.length} in origin`);
  if (length > limits.maxTokens) refuse(`${length} tokens, the limit is ${limits.maxTokens}`);
  const stranger = tokenIds.find((token) => token >= limits.vocabSize);
  if (stranger !== undefined) refuse(`token ${stranger}, but the vocabulary has ${limits.vocabSize}`);
  if (lossMask[0] === 1) refuse('lossMask: nothing predicts the first token');
  if (!lossMask.includes(1)) refuse('lossMask: nothing to learn');
  const wrong = origin?.findIndex((from, t) => (from === 'policy') !== (lossMask[t] === 1)) ?? -1;
  if (wrong >= 0) refuse(`token ${wrong}: lossMask is ${lossMask[wrong]}, origin "${origin?.[wrong]}"`);
  return {
    id: id ?? where,
    tokenIds: Int32Array.from(tokenIds),
    lossMask: Uint8Array.from(lossMask),
    environmentMask: Uint8Array.from(tokenIds, (_, t) => (origin?.[t] === 'environment' ? 1 : 0)),
  };
}
