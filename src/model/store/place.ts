// Puts the files of a model together aside and renames the folder into place, its record written last: a process
// killed at any moment leaves a whole model or none.

import { createReadStream, createWriteStream } from 'node:fs';
import { constants, copyFile, link, mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { CancelledError, InvalidInputError, NotFoundError } from '../../errors.js';
import { syncFile, syncFolder } from '../../util/atomic-file.js';
import { sha256File, sha256Hex } from '../../util/digest.js';
import { writeJsonFile } from '../../util/json-file.js';
import type { OnProgress } from '../../util/progress.js';
import { claim, type FileRole } from '../../weights/index.js';
import {
  folderFaults,
  modelFolder,
  modelsFolder,
  type StoredModel,
  storedModel,
  workFolder,
} from './open.js';
import { type ModelRecord, RECORD_NAME, type RecordFile, readRecord, recordDigest } from './record.js';

export interface SourceFile {
  /** Name in the model folder. */
  readonly name: string;
  readonly role: FileRole;
  /**
   * `cache`: a file of the download cache, which never changes, so it is linked and its sum is known. `user`: a
   * file of the user's, which may change later, so it is copied (sharing blocks where the file system can).
   * `text`: made at import.
   */
  readonly from:
    | { readonly kind: 'cache'; readonly file: string; readonly sha256: string }
    | { readonly kind: 'user'; readonly file: string }
    | { readonly kind: 'text'; readonly text: string };
}

export type RecordHead = Omit<ModelRecord, 'files' | 'digest' | 'formatVersion'>;

export interface PlaceOptions {
  readonly onProgress?: OnProgress;
  readonly onNote?: (line: string) => void;
  readonly signal?: AbortSignal;
  /** Looks at the whole model while it still lies aside; throws to refuse it. */
  readonly check: (model: StoredModel) => Promise<void>;
}

/**
 * @throws {InvalidInputError} another model has this id already; the same content under the same id is no error
 */
export async function placeModel(
  home: string,
  head: RecordHead,
  files: readonly SourceFile[],
  options: PlaceOptions,
): Promise<StoredModel> {
  const folder = modelFolder(home, head.id);
  await mkdir(modelsFolder(home), { recursive: true });
  const held = await claim({
    folder: workFolder(home),
    key: `import-${head.id}`,
    kind: 'folder',
    onWait: () => options.onNote?.(`waiting for another process that imports ${head.id}`),
    signal: options.signal,
  });
  const aside = held.path;
  try {
    const meter = await byteMeter(head.id, files, options);
    await emptyFolder(aside);
    const placed: RecordFile[] = [];
    for (const file of files) {
      placed.push(await placeFile(aside, file, meter));
    }
    const content = { ...head, files: placed };
    const record: ModelRecord = { formatVersion: 1, ...content, digest: recordDigest(content) };
    await options.check(storedModel(aside, record));
    await writeJsonFile(join(aside, RECORD_NAME), record);
    return await moveIntoPlace(home, aside, folder, record);
  } finally {
    await held.release(true);
  }
}

/** Reports the bytes of all files together; stops the work when the caller wants it stopped. */
type Meter = (bytes: number) => void;

async function byteMeter(
  id: string,
  files: readonly SourceFile[],
  { onProgress, signal }: PlaceOptions,
): Promise<Meter> {
  const sizes = await Promise.all(
    files.map(async ({ from }) => (from.kind === 'user' ? (await stat(from.file)).size : 0)),
  );
  const total = sizes.reduce((sum, size) => sum + size, 0);
  let done = 0;
  return (bytes) => {
    if (signal?.aborted) throw new CancelledError();
    done += bytes;
    onProgress?.({ stage: `import ${id}`, done, total, unit: 'bytes' });
  };
}

async function placeFile(aside: string, { name, role, from }: SourceFile, meter: Meter): Promise<RecordFile> {
  if (basename(name) !== name) throw new InvalidInputError(`"${name}" is no plain file name`);
  const target = join(aside, name);
  let sha256: string;
  if (from.kind === 'text') {
    await writeFile(target, from.text, { flag: 'wx' });
    sha256 = sha256Hex(from.text);
  } else if (from.kind === 'cache') {
    await link(from.file, target).catch(() => copyFile(from.file, target));
    sha256 = from.sha256;
  } else sha256 = await copyUserFile(from.file, target, meter);
  await syncFile(target);
  return { path: name, role, sizeBytes: (await stat(target)).size, sha256, derived: from.kind === 'text' };
}

/** Shares blocks where the file system can, else copies; gives the sum of what the copy holds. */
async function copyUserFile(file: string, target: string, meter: Meter): Promise<string> {
  try {
    await copyFile(file, target, constants.COPYFILE_FICLONE_FORCE);
  } catch {
    await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), createWriteStream(target));
  }
  let before = 0;
  return sha256File(target, (total) => {
    meter(total - before);
    before = total;
  });
}

/** What a killed process left is of no use here. */
async function emptyFolder(folder: string): Promise<void> {
  for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true, force: true });
}

async function moveIntoPlace(
  home: string,
  aside: string,
  folder: string,
  record: ModelRecord,
): Promise<StoredModel> {
  const present = await readRecord(folder).catch(() => null);
  if (present && present.digest !== record.digest)
    throw new InvalidInputError(
      `a model named "${record.id}" is already there with other content (${present.origin}); remove it first or choose another name`,
    );
  if (present && (await folderFaults(folder, present)).length === 0) return storedModel(folder, present);
  // The same model, damaged, or a folder without a readable record, which is none: made anew.
  await rm(folder, { recursive: true, force: true });
  await rename(aside, folder);
  await syncFolder(modelsFolder(home));
  return storedModel(folder, record);
}

/**
 * Removes an imported model, damaged or not, and what was built from it; files in the download cache stay.
 * @throws {NotFoundError} no such model
 */
export async function removeModel(home: string, id: string): Promise<void> {
  const folder = modelFolder(home, id);
  if (!(await stat(folder).catch(() => null)))
    throw new NotFoundError(`no model "${id}" in ${modelsFolder(home)}`);
  const held = await claim({ folder: workFolder(home), key: `remove-${id}`, kind: 'folder' });
  try {
    // Out of sight in one step, then byte by byte.
    await emptyFolder(held.path);
    await rename(folder, held.path);
  } finally {
    await held.release(true);
  }
}
