import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { NotFoundError, UnsupportedError } from '../../errors.js';
import { wikipediaReader } from '../wikipedia/wikipedia-reader.js';
import { jsonlReader } from './jsonl-reader.js';
import type { PassageReader, ReaderKind } from './reader.js';
import { textReader } from './text-reader.js';

/** The first that accepts an input reads it. */
const kinds: readonly ReaderKind[] = [jsonlReader, wikipediaReader, textReader];

/**
 * Opens the reader for a file or folder.
 * @throws {NotFoundError} nothing is there
 * @throws {UnsupportedError} no reader for it; the message lists what can be read
 */
export async function openReader(input: string): Promise<PassageReader> {
  const path = resolve(input);
  const found = await stat(path).catch(() => null);
  if (found === null) throw new NotFoundError(`input ${path}: no such file or folder`);
  const kind = kinds.find((candidate) => candidate.accepts({ path, isFolder: found.isDirectory() }));
  if (kind === undefined)
    throw new UnsupportedError(
      `input ${path}: expected ${kinds.map(({ description }) => description).join('; or ')}`,
    );
  return kind.open(path);
}
