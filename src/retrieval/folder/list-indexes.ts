import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { NotFoundError, SearchloopError } from '../../errors.js';
import { type IndexManifest, readManifest } from './manifest.js';
import { openPassages } from './open-passages.js';

export interface IndexSummary {
  readonly folder: string;
  readonly manifest: IndexManifest;
  /** Passages now, later changes counted. */
  readonly passageCount: number;
  readonly snapshotId: string;
  /** Number of the last change. */
  readonly revision: number;
}

export interface IndexFault {
  readonly folder: string;
  readonly error: string;
}

/** What an index folder holds now. Reads little: `verifyIndex` reads all. */
export async function describeIndex(folder: string): Promise<IndexSummary> {
  const manifest = await readManifest(folder);
  const store = openPassages(folder, manifest);
  try {
    const { count: passageCount, snapshotId, revision } = store;
    return { folder, manifest, passageCount, snapshotId, revision };
  } finally {
    store.close();
  }
}

/** All built indexes below a folder, by name; one that cannot be read is listed with its fault. */
export async function listIndexes(indexes: string): Promise<(IndexSummary | IndexFault)[]> {
  const entries = await readdir(indexes, { withFileTypes: true }).catch(() => []);
  const found: (IndexSummary | IndexFault)[] = [];
  for (const { name } of entries
    .filter((entry) => entry.isDirectory())
    .sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const folder = join(indexes, name);
    try {
      found.push(await describeIndex(folder));
    } catch (error) {
      if (error instanceof NotFoundError) continue;
      // One that another user owns, or whose disk is bad, hides none of the others.
      const { code, message } = error as NodeJS.ErrnoException;
      if (!(error instanceof SearchloopError) && code === undefined) throw error;
      found.push({ folder, error: message });
    }
  }
  return found;
}
