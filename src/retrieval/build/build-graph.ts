import { existsSync, renameSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { CancelledError } from '../../errors.js';
import type { OnProgress } from '../../util/progress.js';
import { readHnswHeader } from '../hnsw/hnsw-file.js';
import { HnswIndex, type HnswSettings } from '../hnsw/hnsw-index.js';
import type { VectorFile } from './vector-file.js';

const CHUNK = 1024;
/** The event loop gets a turn after this many inserts, about every 30 ms. */
const INSERTS_PER_TURN = 32;
const CHECKPOINT_MS = 10 * 60_000;

/**
 * Third stage: the graph over all vectors, in the order of the labels. Long builds are saved every ten minutes.
 * A build that was interrupted before its first save gives the same graph as one that was not.
 */
export async function buildGraph(
  vectors: VectorFile,
  path: string,
  settings: HnswSettings,
  options: { readonly onProgress?: OnProgress; readonly signal?: AbortSignal },
): Promise<void> {
  const total = vectors.count;
  const { graph, start } = resume(path, settings, total);
  const save = (): void => {
    graph.save(`${path}.new`);
    renameSync(`${path}.new`, path);
  };
  const { dimension } = settings;
  let saved = Date.now();
  for (let first = start; first < total; first += CHUNK) {
    const chunk = vectors.read(first, Math.min(CHUNK, total - first));
    for (let i = 0; i * dimension < chunk.length; i++) {
      graph.add(first + i, chunk.subarray(i * dimension, (i + 1) * dimension));
      if (i % INSERTS_PER_TURN === 0) await setImmediate();
    }
    options.onProgress?.({ stage: 'graph', done: Math.min(first + CHUNK, total), total, unit: 'passages' });
    const now = Date.now();
    if (options.signal?.aborted || now - saved > CHECKPOINT_MS) {
      save();
      saved = now;
    }
    if (options.signal?.aborted) throw new CancelledError();
  }
  save();
}

function resume(path: string, settings: HnswSettings, total: number): { graph: HnswIndex; start: number } {
  if (!existsSync(path)) return { graph: HnswIndex.create(settings, total), start: 0 };
  const { count } = readHnswHeader(path);
  return { graph: HnswIndex.load(path, settings, count), start: count };
}
