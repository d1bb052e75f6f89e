// JSON files of ours and of models: read against a schema, with errors that name file and field; written whole.

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { FileFormatError } from '../errors.js';
import { writeFileAtomic } from './atomic-file.js';

/** Any object: for files of others, of which we use some fields. */
export const jsonObject = z.record(z.string(), z.unknown(), 'expected a JSON object');

/** @throws {FileFormatError} naming file and field; what the disk says, where it cannot be read */
export async function readJsonFile<Value>(path: string, schema: z.ZodType<Value>): Promise<Value> {
  return parseJson(await readFile(path, 'utf8'), schema, path);
}

/** @throws as `readJsonFile` */
export function readJsonFileSync<Value>(path: string, schema: z.ZodType<Value>): Value {
  return parseJson(readFileSync(path, 'utf8'), schema, path);
}

/** Null where there is no such file. @throws as `readJsonFile` */
export async function readJsonFileIfAny<Value>(
  path: string,
  schema: z.ZodType<Value>,
): Promise<Value | null> {
  try {
    return await readJsonFile(path, schema);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw error;
  }
}

/**
 * @param where  file, or file and line
 * @throws {FileFormatError}
 */
export function parseJson<Value>(text: string, schema: z.ZodType<Value>, where: string): Value {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new FileFormatError(`${where}: expected JSON: ${(cause as Error).message}`, { cause });
  }
  return checkJson(value, schema, where);
}

/** @throws {FileFormatError} naming each wrong field */
export function checkJson<Value>(value: unknown, schema: z.ZodType<Value>, where: string): Value {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new FileFormatError(`${where}: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

/** Readers see the old file or the new one, never a part. */
export function writeJsonFile(path: string, value: unknown): Promise<void> {
  return writeFileAtomic(path, `${JSON.stringify(value, null, 2)}\n`);
}
