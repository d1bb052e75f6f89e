// Named corpora: manifests in index/*.json that say where a corpus comes from and about how large it is.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { packageRoot } from '../../config/index.js';
import { FileFormatError, NotFoundError } from '../../errors.js';
import { readJsonFileSync } from '../../util/json-file.js';

const address = z.url({ protocol: /^https?$/ }).regex(/[^/]$/, 'expected no slash at the end');
const datedPath = z
  .string()
  .regex(/^[\w./{}-]+$/, 'expected a relative path')
  .refine(
    (path) => path.includes('{date}') && !/^\/|\.\./.test(path),
    'expected a relative path with {date}',
  );

const dumpSourceSchema = z.strictObject({
  type: z.literal('dump'),
  mirror: address.describe('Mirror of the dumps of Wikimedia.'),
  sums: datedPath.describe('List of sha1 sums; {date} is the date of a dump, or "latest".'),
  file: datedPath.describe('The dump; {date} is its date.'),
});

const hubSourceSchema = z.strictObject({
  type: z.literal('hub'),
  repo: z.string().regex(/^datasets\/[\w.-]+\/[\w.-]+$/, 'expected datasets/owner/name'),
  revision: z.string().min(1),
  file: z.string().min(1).describe('Its size and sha256 come from the listing of the hub.'),
});

const count = z.number().int().min(1);

const corpusSchema = z.strictObject({
  formatVersion: z.literal(1),
  id: z.string().regex(/^[\w-]+$/),
  title: z.string().min(1),
  licence: z.string().min(1).describe('SPDX identifier.'),
  format: z.enum(['wikipedia', 'jsonl']).describe('Kind of input that the index builder reads it as.'),
  source: z.discriminatedUnion('type', [dumpSourceSchema, hubSourceSchema]),
  about: z.strictObject({
    passages: count.nullable(),
    compressedBytes: count.nullable(),
    from: z.string().min(1).describe('Where the figures come from.'),
  }),
});

export type Corpus = z.infer<typeof corpusSchema>;
export type DumpSource = z.infer<typeof dumpSourceSchema>;

/** Folder of the manifests that come with the project. */
const corporaFolder = join(packageRoot, 'index');

export function corpusIds(folder: string = corporaFolder): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => name.slice(0, -'.json'.length))
    .sort();
}

/**
 * @throws {NotFoundError} naming the corpora there are
 * @throws {FileFormatError} naming file and field
 */
export function findCorpus(id: string, folder: string = corporaFolder): Corpus {
  const ids = corpusIds(folder);
  if (!ids.includes(id)) throw new NotFoundError(`no corpus "${id}"; there are: ${ids.join(', ') || 'none'}`);
  const path = join(folder, `${id}.json`);
  const corpus = readJsonFileSync(path, corpusSchema);
  if (corpus.id !== id) throw new FileFormatError(`${path}: id is "${corpus.id}", expected "${id}"`);
  return corpus;
}
