// The download cache, shared by all projects of a user: files named by their sha256, whole or not there.

import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncFolder } from '../../util/atomic-file.js';
import { sha256File } from '../../util/digest.js';

export interface DownloadCache {
  /** Where claims lie while their file is incomplete. */
  readonly partialFolder: string;
  /** Place of a file, whether or not it is there. */
  path(sha256: string): string;
  has(sha256: string): Promise<boolean>;
  /** Moves a complete, checked file to its place; the bytes are already on disk. */
  adopt(file: string, sha256: string): Promise<void>;
  remove(sha256: string): Promise<void>;
}

/** @param home the folder of `homeFolder(config)` */
export function openDownloadCache(home: string): DownloadCache {
  const folder = join(home, 'downloads');
  const path = (sha256: string): string => join(folder, 'sha256', sha256);
  return {
    partialFolder: join(folder, 'partial'),
    path,
    has: async (sha256) => (await stat(path(sha256)).catch(() => null))?.isFile() ?? false,
    adopt: async (file, sha256) => {
      await mkdir(dirname(path(sha256)), { recursive: true });
      await rename(file, path(sha256));
      await syncFolder(dirname(path(sha256)));
    },
    remove: (sha256) => rm(path(sha256), { force: true }),
  };
}

/**
 * Whether the cache holds the file with the right bytes. A file with others is moved aside (`.rejected`), so that
 * it can be looked at and is never used.
 */
export async function holdsChecked(cache: DownloadCache, sha256: string): Promise<boolean> {
  if (!(await cache.has(sha256))) return false;
  if ((await sha256File(cache.path(sha256))) === sha256) return true;
  await rename(cache.path(sha256), `${cache.path(sha256)}.rejected`);
  return false;
}
