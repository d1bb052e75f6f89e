// Published adapters on disk, one folder a version. A folder appears whole, by one rename, its manifest written last;
// what a killed process left is named and removed, never used.

import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { IntegrityError, NotFoundError } from '../../errors.js';
import { syncFolder, writeFileAtomic } from '../../util/atomic-file.js';
import { sha256File } from '../../util/digest.js';
import { parseJson, writeJsonFile } from '../../util/json-file.js';

const FILES = ['adapter_config.json', 'adapter_model.safetensors'] as const;
const MANIFEST = 'manifest.json';
const PARTIAL = '.partial-';
/** What others put beside versions is not ours to judge or to remove. */
const isVersion = (name: string): boolean => /^[0-9a-f]{64}$/u.test(name);

const manifestSchema = z.strictObject({
  formatVersion: z.literal(1),
  version: z.string(),
  files: z.record(z.string(), z.string()),
});

export const versionFolder = (root: string, version: string): string => join(root, version);

/** Copies a checkpoint's adapter. A version that is there stays as it is: same name, same content. */
export async function writeVersion(root: string, version: string, from: string): Promise<string> {
  const folder = versionFolder(root, version);
  if ((await faultOf(root, version)) === null) return folder;
  const aside = join(root, `${PARTIAL}${version.slice(0, 16)}-${randomBytes(4).toString('hex')}`);
  await mkdir(aside, { recursive: true });
  try {
    const files: Record<string, string> = {};
    for (const name of FILES) {
      files[name] = await sha256File(join(from, name));
      await writeFileAtomic(join(aside, name), await readFile(join(from, name)));
    }
    const manifest = { formatVersion: 1, version, files };
    await writeJsonFile(join(aside, MANIFEST), manifest);
    await rm(folder, { recursive: true, force: true });
    await rename(aside, folder);
    await syncFolder(root);
    return folder;
  } catch (error) {
    await rm(aside, { recursive: true, force: true });
    throw error;
  }
}

/** @throws {NotFoundError} it is not there; {IntegrityError} it is half-written or changed; what the disk says */
export async function checkVersion(root: string, version: string): Promise<string> {
  const fault = await faultOf(root, version);
  if (fault !== null) throw fault;
  return versionFolder(root, version);
}

/** @throws what the disk says: a folder that cannot be read just now is not known to be damaged */
async function faultOf(root: string, version: string): Promise<Error | null> {
  const folder = versionFolder(root, version);
  let text: string;
  try {
    text = await readFile(join(folder, MANIFEST), 'utf8');
  } catch (cause) {
    if (!isMissing(cause)) throw cause;
    const names = await readdir(folder).catch(() => null);
    return names === null
      ? new NotFoundError(`version ${version} is not at ${folder}`, { cause })
      : new IntegrityError(`${folder} is half-written: it has no ${MANIFEST}`, { cause });
  }
  let manifest: z.infer<typeof manifestSchema>;
  try {
    manifest = parseJson(text, manifestSchema, join(folder, MANIFEST));
  } catch (cause) {
    return new IntegrityError((cause as Error).message, { cause });
  }
  if (manifest.version !== version)
    return new IntegrityError(
      `${folder}: its manifest names version ${manifest.version}, expected ${version}`,
    );
  for (const name of FILES) {
    const expected = manifest.files[name] ?? 'none';
    const found = await sha256File(join(folder, name)).catch((error: unknown) => {
      if (isMissing(error)) return 'no file';
      throw error;
    });
    if (found !== expected)
      return new IntegrityError(`${join(folder, name)}: sha256 ${found}, expected ${expected}`);
  }
  return null;
}

const isMissing = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');

/** Removes half-written and damaged folders; one that cannot be read stays. @returns what was wrong with each */
export async function sweepVersions(root: string): Promise<string[]> {
  const names = await readdir(root).catch(() => [] as string[]);
  const notes: string[] = [];
  for (const name of names.filter((name) => isVersion(name) || name.startsWith(PARTIAL)).sort()) {
    let fault: Error | null;
    try {
      fault = name.startsWith(PARTIAL)
        ? new IntegrityError(`${join(root, name)} is half-written`)
        : await faultOf(root, name);
    } catch (error) {
      notes.push(`${join(root, name)} cannot be read: ${(error as Error).message}`);
      continue;
    }
    if (fault === null) continue;
    notes.push(fault.message);
    await rm(join(root, name), { recursive: true, force: true }).catch((error: Error) => {
      notes.push(`${join(root, name)} cannot be removed: ${error.message}`);
    });
  }
  return notes;
}

/** Removes versions that nobody needs any more. */
export async function pruneVersions(root: string, keep: ReadonlySet<string>): Promise<void> {
  for (const name of await readdir(root).catch(() => [] as string[]))
    if (isVersion(name) && !keep.has(name)) {
      // The manifest goes first: what a kill leaves is then known as half-written.
      await rm(join(root, name, MANIFEST), { force: true });
      await rm(join(root, name), { recursive: true, force: true });
    }
}
