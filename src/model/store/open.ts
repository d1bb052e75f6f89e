// Imported models: one folder each under `models/`, named by id.

import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { FileFormatError, NotFoundError } from '../../errors.js';
import type { TokenizerSource } from '../../tokenizer/index.js';
import { sha256File } from '../../util/digest.js';
import { readJsonFile } from '../../util/json-file.js';
import type { OnProgress } from '../../util/progress.js';
import { type FileRole, modelIdSchema, openWeights, type TensorSource } from '../../weights/index.js';
import { type ModelRecord, readRecord, recordDigest } from './record.js';

export interface StoredModel {
  readonly record: ModelRecord;
  readonly folder: string;
  /** Path of the file with this role; null when the model has none. */
  file(role: FileRole): string | null;
  /** Opened anew at each call; the caller closes it. */
  openWeights(): TensorSource;
  readTokenizer(): Promise<TokenizerSource>;
}

export const modelsFolder = (home: string): string => join(home, 'models');

/** Work in progress of imports, removals and conversions. */
export const workFolder = (home: string): string => join(modelsFolder(home), '.partial');

/** @throws {NotFoundError} an id that cannot be a folder name, so that it names nothing */
export function modelFolder(home: string, id: string): string {
  if (!modelIdSchema.safeParse(id).success) throw new NotFoundError(`"${id}" is no model name`);
  return join(modelsFolder(home), id);
}

/**
 * Opens an imported model. Sizes are checked, sums are not (see `verifyModel`).
 * @param home the folder of `homeFolder(config)`
 * @throws {NotFoundError} no such model, with the names there are; {FileFormatError} a file is missing or has changed
 */
export async function openModel(home: string, id: string): Promise<StoredModel> {
  const folder = modelFolder(home, id);
  const record = await readRecord(folder).catch(async (error) => {
    if (!(error instanceof NotFoundError)) throw error;
    const ids = (await listModels(home)).map((model) => model.id);
    throw new NotFoundError(`no model "${id}"; imported are: ${ids.join(', ') || 'none'}`, { cause: error });
  });
  const faults = await sizeFaults(folder, record);
  if (faults.length > 0) throw new FileFormatError(`model "${id}" is damaged: ${faults.join('; ')}`);
  return storedModel(folder, record);
}

export function storedModel(folder: string, record: ModelRecord): StoredModel {
  const file = (role: FileRole): string | null => {
    const found = record.files.find((item) => item.role === role);
    return found ? join(folder, found.path) : null;
  };
  return {
    record,
    folder,
    file,
    openWeights: () => openWeights((file('weightsIndex') ?? file('weights')) as string),
    readTokenizer: async () => {
      const json = async (role: FileRole): Promise<unknown> => {
        const path = file(role);
        return path === null ? undefined : readJsonFile(path, z.unknown());
      };
      const template = file('chatTemplate');
      return {
        tokenizerJson: await json('tokenizer'),
        tokenizerConfig: await json('tokenizerConfig'),
        ...(template === null ? {} : { chatTemplate: await readFile(template, 'utf8') }),
      };
    },
  };
}

/** Records of all imported models by id; a folder with a broken record is left out. */
export async function listModels(home: string): Promise<ModelRecord[]> {
  const names = await readdir(modelsFolder(home)).catch(() => []);
  const records: ModelRecord[] = [];
  for (const name of names.sort()) {
    if (!modelIdSchema.safeParse(name).success) continue;
    const record = await readRecord(join(modelsFolder(home), name)).catch(() => null);
    if (record) records.push(record);
  }
  return records;
}

interface VerifyOptions {
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal;
}

/** Reads every byte. @throws what the signal fired with. @returns what is wrong, one line a fault; empty when all is right */
export async function verifyModel(home: string, id: string, options: VerifyOptions = {}): Promise<string[]> {
  const folder = modelFolder(home, id);
  return folderFaults(folder, await readRecord(folder), options);
}

/** Compares every byte of a model folder with its record. */
export async function folderFaults(
  folder: string,
  record: ModelRecord,
  { onProgress, signal }: VerifyOptions = {},
): Promise<string[]> {
  const faults = await sizeFaults(folder, record);
  if (faults.length > 0) return faults;
  const total = record.files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  let before = 0;
  for (const { path, sha256, sizeBytes } of record.files) {
    const found = await sha256File(join(folder, path), (bytes) => {
      signal?.throwIfAborted();
      onProgress?.({ stage: `verify ${record.id}`, done: before + bytes, total, unit: 'bytes' });
    });
    if (found !== sha256) faults.push(`${path}: sha256 ${found}, expected ${sha256}`);
    before += sizeBytes;
  }
  if (recordDigest(record) !== record.digest)
    faults.push(`model.json: digest ${record.digest}, its files give ${recordDigest(record)}`);
  return faults;
}

async function sizeFaults(folder: string, record: ModelRecord): Promise<string[]> {
  const faults: string[] = [];
  for (const { path, sizeBytes } of record.files) {
    const found = await stat(join(folder, path)).catch(() => null);
    if (!found) faults.push(`${path} is missing`);
    else if (found.size !== sizeBytes) faults.push(`${path} has ${found.size} bytes, expected ${sizeBytes}`);
  }
  return faults;
}
