// model.json: what an imported model is and which files it consists of.

import { join } from 'node:path';
import { z } from 'zod';
import { NotFoundError } from '../../errors.js';
import { canonicalJson, sha256Hex } from '../../util/digest.js';
import { readJsonFileIfAny } from '../../util/json-file.js';
import { embedderSchema, fileRoleSchema, modelIdSchema, sha256Schema } from '../../weights/index.js';

export const RECORD_NAME = 'model.json';

const recordFileSchema = z.strictObject({
  path: z.string().regex(/^[^/\\\u0000]+$/, 'expected a file name'),
  role: fileRoleSchema,
  sizeBytes: z.number().int().min(0),
  sha256: sha256Schema,
  derived: z.boolean().describe('Made at import from the weights file (the tokenizer of a GGUF file).'),
});

const recordSchema = z.strictObject({
  formatVersion: z.literal(1),
  id: modelIdSchema,
  title: z.string().min(1),
  kind: z.enum(['decoder', 'encoder']),
  architecture: z.string().min(1),
  licence: z.string().nullable(),
  origin: z.string().describe('Where it came from, for people.'),
  format: z.enum(['gguf', 'safetensors']),
  files: z.array(recordFileSchema).min(1),
  embedder: embedderSchema.nullable(),
  digest: sha256Schema.describe('Names the content: equal for equal files and conventions.'),
});

export type ModelRecord = z.infer<typeof recordSchema>;
export type RecordFile = ModelRecord['files'][number];

/** Derived files and names do not count: the same weights give the same digest wherever they came from. */
export function recordDigest(record: Pick<ModelRecord, 'kind' | 'format' | 'files' | 'embedder'>): string {
  const files = record.files
    .filter(({ derived }) => !derived)
    .map(({ role, sha256 }) => `${role} ${sha256}`)
    .sort();
  const { kind, format, embedder } = record;
  return sha256Hex(canonicalJson({ kind, format, files, embedder }));
}

/** @throws {NotFoundError} no such model; {FileFormatError} naming file and field */
export async function readRecord(folder: string): Promise<ModelRecord> {
  const path = join(folder, RECORD_NAME);
  const record = await readJsonFileIfAny(path, recordSchema);
  if (record === null) throw new NotFoundError(`no model in ${folder}`);
  return record;
}
