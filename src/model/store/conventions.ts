// How an embedding model wants to be used, from the files that sentence-transformers puts beside it.

import { z } from 'zod';
import { InvalidInputError, UnsupportedError } from '../../errors.js';
import { jsonObject, readJsonFile } from '../../util/json-file.js';
import type { EmbedderConventions, FileRole } from '../../weights/index.js';

/** What the caller says wins over what the files say. */
export type GivenConventions = Partial<EmbedderConventions>;

type Json = Readonly<Record<string, unknown>>;

/**
 * @param files role to path of the files there are
 * @throws {InvalidInputError} no file says how to pool and the caller does not either
 * @throws {UnsupportedError} a pooling that is not mean or cls
 */
export async function readConventions(
  files: ReadonlyMap<FileRole, string>,
  given: GivenConventions,
): Promise<EmbedderConventions> {
  const pooling = given.pooling ?? (await poolingOf(files));
  if (pooling === null)
    throw new InvalidInputError(
      'an encoder without sentence-transformers files (1_Pooling/config.json): say how to pool, mean or cls',
    );
  const prompts = await promptsOf(files);
  return {
    pooling,
    normalise: given.normalise ?? (await normalises(files)),
    queryPrefix: given.queryPrefix ?? prompts('query'),
    passagePrefix: given.passagePrefix ?? (prompts('passage') || prompts('document')),
    maxTokens: given.maxTokens ?? (await maxTokensOf(files)),
  };
}

async function poolingOf(files: ReadonlyMap<FileRole, string>): Promise<'mean' | 'cls' | null> {
  const config = await readJson(files.get('pooling'));
  if (!config) return null;
  const modes = Object.entries(config)
    .filter(([key, value]) => key.startsWith('pooling_mode') && value === true)
    .map(([key]) => key);
  if (modes.length === 0 && typeof config.pooling_mode === 'string') modes.push(config.pooling_mode);
  const known: Readonly<Record<string, 'mean' | 'cls'>> = {
    pooling_mode_mean_tokens: 'mean',
    pooling_mode_cls_token: 'cls',
    mean: 'mean',
    cls: 'cls',
  };
  const mode = known[modes[0] ?? ''];
  if (modes.length !== 1 || mode === undefined)
    throw new UnsupportedError(
      `pooling ${modes.join(' + ') || '(none)'} is not supported; supported: mean, cls`,
    );
  return mode;
}

/** A model without a list of modules is one whose vectors are compared by angle: normalised. */
async function normalises(files: ReadonlyMap<FileRole, string>): Promise<boolean> {
  const path = files.get('modules');
  if (path === undefined) return true;
  const modules = await readJsonFile(path, z.array(z.unknown(), 'expected a list of modules'));
  return modules.some((item) => /\.Normalize$/.test(String((item as Json | null)?.type ?? '')));
}

async function promptsOf(files: ReadonlyMap<FileRole, string>): Promise<(name: string) => string> {
  const prompts = (await readJson(files.get('prompts')))?.prompts as Json | undefined;
  return (name) => {
    const value = prompts?.[name];
    return typeof value === 'string' ? value : '';
  };
}

/** The shortest of the limits that the files name. */
async function maxTokensOf(files: ReadonlyMap<FileRole, string>): Promise<number> {
  const limits = [
    (await readJson(files.get('sentenceConfig')))?.max_seq_length,
    (await readJson(files.get('tokenizerConfig')))?.model_max_length,
    (await readJson(files.get('config')))?.max_position_embeddings,
  ].filter((value): value is number => Number.isInteger(value) && (value as number) >= 8);
  if (limits.length === 0)
    throw new InvalidInputError(
      'no file says how many tokens the encoder takes; expected max_position_embeddings',
    );
  return Math.min(...limits);
}

async function readJson(path: string | undefined): Promise<Json | null> {
  return path === undefined ? null : readJsonFile(path, jsonObject);
}
