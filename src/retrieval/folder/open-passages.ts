import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { IntegrityError } from '../../errors.js';
import { openDatabase } from '../../storage/index.js';
import { PassageStore } from '../passages/passage-store.js';
import type { IndexManifest } from './manifest.js';

/** Longest wait for another process that changes the index. */
export const BUSY_TIMEOUT_MS = 10_000;

/**
 * Opens the passages of an index for reading and checks that they are those of its manifest.
 * @throws {IntegrityError} missing, or of another index; the message holds both values
 */
export function openPassages(folder: string, manifest: IndexManifest): PassageStore {
  const path = join(folder, manifest.passages.file);
  if (!existsSync(path)) throw new IntegrityError(`index "${manifest.name}": ${path} is missing`);
  const db = openDatabase(path, { readonly: true, busyTimeoutMs: BUSY_TIMEOUT_MS });
  try {
    const store = new PassageStore(db, path);
    const there = store.snapshotAt(manifest.revision);
    if (there !== manifest.snapshotId)
      throw new IntegrityError(
        `${path}: expected snapshot ${manifest.snapshotId} at revision ${manifest.revision}, came ${there ?? 'none'}`,
        { details: { expected: manifest.snapshotId, actual: there } },
      );
    if (store.revision === manifest.revision && store.count !== manifest.passages.count)
      throw new IntegrityError(`${path}: expected ${manifest.passages.count} passages, came ${store.count}`);
    return store;
  } catch (error) {
    db.close();
    throw error;
  }
}
