// The checkpoints of a run, one folder a step under `checkpoints/`. A folder appears whole, by one rename.

import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder, writeFileAtomic } from '../../util/atomic-file.js';
import { sha256File } from '../../util/digest.js';
import { type CheckpointManifest, checkSizes, MANIFEST_NAME, readManifest } from './manifest.js';

export interface Checkpoint {
  readonly folder: string;
  readonly manifest: CheckpointManifest;
}

export interface CheckpointList {
  /** By step, ascending. */
  readonly checkpoints: readonly Checkpoint[];
  /** Folders that are no checkpoint, with what is wrong. */
  readonly faults: readonly { readonly folder: string; readonly reason: string }[];
}

export type CheckpointHead = Pick<CheckpointManifest, 'step' | 'version' | 'parent' | 'configDigest'>;

const PARTIAL = '.partial-';

const nameOf = (step: number): string => `step-${String(step).padStart(8, '0')}`;

/** Folder of the checkpoint of a step. */
export const checkpointFolder = (root: string, step: number): string => join(root, nameOf(step));

/**
 * Lets `fill` write a checkpoint's files into a folder aside, adds the manifest and moves it into place. `fill`
 * must leave its files durable (`writeFileAtomic`, `writeSafetensors`) and returns what they hold.
 */
export async function commitCheckpoint(
  root: string,
  step: number,
  fill: (folder: string) => Promise<Omit<CheckpointHead, 'step'>>,
): Promise<Checkpoint> {
  const aside = join(root, `${PARTIAL}${nameOf(step)}-${process.pid}-${randomBytes(4).toString('hex')}`);
  await mkdir(aside, { recursive: true });
  try {
    const head = { step, ...(await fill(aside)) };
    const manifest: CheckpointManifest = {
      formatVersion: 1,
      ...head,
      createdAt: new Date().toISOString(),
      files: await filesUnder(aside),
    };
    await writeFileAtomic(join(aside, MANIFEST_NAME), `${JSON.stringify(manifest, null, 2)}\n`);
    const folder = checkpointFolder(root, step);
    await rm(folder, { recursive: true, force: true });
    await rename(aside, folder);
    await syncFolder(root);
    return { folder, manifest };
  } catch (error) {
    await rm(aside, { recursive: true, force: true });
    throw error;
  }
}

async function filesUnder(folder: string): Promise<CheckpointManifest['files']> {
  const files: CheckpointManifest['files'] = [];
  for (const path of (await readdir(folder, { recursive: true })).sort()) {
    const found = await stat(join(folder, path));
    if (found.isFile())
      files.push({ path, sizeBytes: found.size, sha256: await sha256File(join(folder, path)) });
  }
  return files;
}

/** Finds what lies under `root`; half-written and damaged checkpoints are named, not used. */
export async function listCheckpoints(root: string): Promise<CheckpointList> {
  const names = await readdir(root).catch(() => [] as string[]);
  const checkpoints: Checkpoint[] = [];
  const faults: { folder: string; reason: string }[] = [];
  for (const name of names.sort()) {
    const folder = join(root, name);
    if (name.startsWith(PARTIAL)) faults.push({ folder, reason: `${folder} is half-written` });
    if (!/^step-\d+$/.test(name)) continue;
    try {
      const manifest = await readManifest(folder);
      await checkSizes(folder, manifest);
      checkpoints.push({ folder, manifest });
    } catch (error) {
      faults.push({ folder, reason: (error as Error).message });
    }
  }
  checkpoints.sort((a, b) => a.manifest.step - b.manifest.step);
  return { checkpoints, faults };
}

/**
 * Removes what killed processes left half-written, and whole checkpoints beyond the last `keepLast`. The first one
 * stays, for the reference policy is read from it, and so do those that `keep` names.
 */
export async function pruneCheckpoints(
  root: string,
  { keepLast, keep }: { readonly keepLast: number; readonly keep: readonly number[] },
): Promise<void> {
  const { checkpoints, faults } = await listCheckpoints(root);
  const old = checkpoints
    .slice(1, Math.max(1, checkpoints.length - keepLast))
    .filter(({ manifest }) => !keep.includes(manifest.step));
  for (const { folder } of [...old, ...faults.filter(({ folder }) => folder.includes(PARTIAL))])
    await removeFolder(folder);
}

/** The manifest goes first: what a kill leaves is then known as half-written. */
async function removeFolder(folder: string): Promise<void> {
  await rm(join(folder, MANIFEST_NAME), { force: true });
  await rm(folder, { recursive: true, force: true });
}
