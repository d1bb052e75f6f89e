// manifest.json of a checkpoint, written last: a folder without it is half-written.

import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { FileFormatError, IntegrityError } from '../../errors.js';
import { sha256File } from '../../util/digest.js';

export const MANIFEST_NAME = 'manifest.json';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const manifestSchema = z.strictObject({
  formatVersion: z.literal(1),
  step: z.number().int().min(0).describe('Optimizer steps since the run began.'),
  version: z.string().min(1).describe('Digest of the trained values: the name of the policy version.'),
  parent: z.string().nullable().describe('Version that this one was trained from.'),
  configDigest: sha256.describe('Of the settings of the run.'),
  createdAt: z.string(),
  files: z.array(z.strictObject({ path: z.string().min(1), sizeBytes: z.number().int().min(0), sha256 })),
});

export type CheckpointManifest = z.infer<typeof manifestSchema>;

/** @throws {FileFormatError} no manifest, or one that cannot be read; the message names file and field */
export async function readManifest(folder: string): Promise<CheckpointManifest> {
  const path = join(folder, MANIFEST_NAME);
  let value: unknown;
  try {
    value = JSON.parse(await readFile(path, 'utf8'));
  } catch (cause) {
    const missing = (cause as NodeJS.ErrnoException).code === 'ENOENT';
    throw new FileFormatError(
      missing
        ? `${folder} is half-written: it has no ${MANIFEST_NAME}`
        : `${path}: ${(cause as Error).message}`,
      { cause },
    );
  }
  const parsed = manifestSchema.safeParse(value);
  if (!parsed.success) throw new FileFormatError(`${path}: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

/** @throws {IntegrityError} a file is missing or has another size than the manifest says */
export async function checkSizes(folder: string, manifest: CheckpointManifest): Promise<void> {
  for (const { path, sizeBytes } of manifest.files) {
    const found = await stat(join(folder, path)).catch(() => null);
    if (found?.size !== sizeBytes)
      throw new IntegrityError(
        `${join(folder, path)}: expected ${sizeBytes} bytes, ${found === null ? 'it is missing' : `found ${found.size}`}`,
      );
  }
}

/** @throws {IntegrityError} a file's content is not what was written */
export async function checkContent(folder: string, manifest: CheckpointManifest): Promise<void> {
  await checkSizes(folder, manifest);
  for (const file of manifest.files) {
    const found = await sha256File(join(folder, file.path));
    if (found !== file.sha256)
      throw new IntegrityError(`${join(folder, file.path)}: sha256 ${found}, expected ${file.sha256}`);
  }
}
