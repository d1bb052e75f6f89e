import { join } from 'node:path';
import { IntegrityError } from '../../errors.js';
import type { OnProgress } from '../../util/progress.js';
import { readHnswVectors } from '../hnsw/hnsw-file.js';
import { lengthOf } from '../hnsw/vectors.js';
import type { PassageStore } from '../passages/passage-store.js';
import { LocalIndex } from './local-index.js';
import { type IndexManifest, readManifest } from './manifest.js';
import { openPassages } from './open-passages.js';

/**
 * Reads a whole index and checks what opening it does not: the database and its full-text index, every passage
 * against the digest of the build, and a unit vector for every passage.
 * @throws {IntegrityError} with both values
 */
export async function verifyIndex(folder: string, onProgress?: OnProgress): Promise<IndexManifest> {
  const manifest = await readManifest(folder);
  const stage = (name: string, done: number): void =>
    onProgress?.({ stage: `verify ${name}`, done, total: 2, unit: 'parts' });
  stage('graph', 0);
  (await LocalIndex.open(folder, { withGraph: true })).close();
  checkVectors(folder, manifest);
  stage('passages', 1);
  const store = openPassages(folder, manifest);
  try {
    checkStore(store, manifest);
  } finally {
    store.close();
  }
  stage('done', 2);
  return manifest;
}

function checkStore(store: PassageStore, manifest: IndexManifest): void {
  const { path } = store;
  const faults = store.db.pragma('integrity_check', { simple: true });
  if (faults !== 'ok') throw new IntegrityError(`${path}: the database is damaged: ${String(faults)}`);
  const { passages, indexed } = store.countRows();
  if (passages !== store.count || indexed !== store.count)
    throw new IntegrityError(
      `${path}: expected ${store.count} passages, came ${passages}, of which ${indexed} are in the full-text index`,
    );
  if (store.revision !== 0) return;
  const digest = store.contentDigest();
  if (digest !== manifest.passages.contentDigest)
    throw new IntegrityError(
      `${path}: expected passages with digest ${manifest.passages.contentDigest}, came ${digest}`,
    );
}

function checkVectors(folder: string, manifest: IndexManifest): void {
  const path = join(folder, manifest.graph.file);
  for (const { label, vector } of readHnswVectors(path)) {
    const length = lengthOf(vector);
    const fits = manifest.graph.metric === 'cosine' ? Math.abs(length - 1) < 1e-3 : Number.isFinite(length);
    if (!fits) throw new IntegrityError(`${path}: vector ${label}: expected length 1, came ${length}`);
  }
}
