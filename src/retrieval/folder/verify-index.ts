import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
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
 * @throws {IntegrityError} with both values; {CancelledError} the signal fired
 */
export async function verifyIndex(
  folder: string,
  { onProgress, signal }: { readonly onProgress?: OnProgress; readonly signal?: AbortSignal } = {},
): Promise<IndexManifest> {
  const manifest = await readManifest(folder);
  const stage = (name: string, done: number): void => {
    signal?.throwIfAborted();
    onProgress?.({ stage: `verify ${name}`, done, total: 2, unit: 'parts' });
  };
  stage('graph', 0);
  (await LocalIndex.open(folder, { withGraph: true })).close();
  await checkVectors(folder, manifest, signal);
  stage('passages', 1);
  const store = openPassages(folder, manifest);
  try {
    await checkStore(store, manifest, signal);
  } finally {
    store.close();
  }
  stage('done', 2);
  return manifest;
}

async function checkStore(store: PassageStore, manifest: IndexManifest, signal?: AbortSignal): Promise<void> {
  const { path } = store;
  const faults = store.db.pragma('integrity_check', { simple: true });
  if (faults !== 'ok') throw new IntegrityError(`${path}: the database is damaged: ${String(faults)}`);
  const { passages, indexed } = store.countRows();
  if (passages !== store.count || indexed !== store.count)
    throw new IntegrityError(
      `${path}: expected ${store.count} passages, came ${passages}, of which ${indexed} are in the full-text index`,
    );
  if (store.revision !== 0) return;
  const digest = await store.contentDigest(signal);
  if (digest !== manifest.passages.contentDigest)
    throw new IntegrityError(
      `${path}: expected passages with digest ${manifest.passages.contentDigest}, came ${digest}`,
    );
}

/** Between two turns of the event loop, which a signal needs to fire. */
const VECTORS_PER_TURN = 4096;

async function checkVectors(folder: string, manifest: IndexManifest, signal?: AbortSignal): Promise<void> {
  const path = join(folder, manifest.graph.file);
  let checked = 0;
  for (const { label, vector } of readHnswVectors(path)) {
    if (++checked % VECTORS_PER_TURN === 0) {
      await setImmediate();
      signal?.throwIfAborted();
    }
    const length = lengthOf(vector);
    const fits = manifest.graph.metric === 'cosine' ? Math.abs(length - 1) < 1e-3 : Number.isFinite(length);
    if (!fits) throw new IntegrityError(`${path}: vector ${label}: expected length 1, came ${length}`);
  }
}
