import { CancelledError, RetrievalError } from '../../errors.js';
import type { OnProgress } from '../../util/progress.js';
import { type Embedder, embeddingText } from '../embedder/embedder.js';
import { lengthOf } from '../hnsw/vectors.js';
import type { PassageStore } from '../passages/passage-store.js';
import type { VectorFile } from './vector-file.js';

/** Passages between two checkpoints; long enough that sorting by length inside it leaves little padding. */
const WINDOW = 1024;

/**
 * Second stage: a vector for every passage, in the order of the labels (which are 0, 1, 2, ... during a build).
 * A window is durable in the file before it is counted in the store.
 * @throws {RetrievalError} the embedder gave a vector that cannot be searched for
 */
export async function embedPassages(
  store: PassageStore,
  vectors: VectorFile,
  embedder: Embedder,
  options: { readonly onProgress?: OnProgress; readonly signal?: AbortSignal },
): Promise<void> {
  const total = store.count;
  const report = (done: number): void =>
    options.onProgress?.({ stage: 'embed', done, total, unit: 'passages' });
  report(vectors.count);
  while (vectors.count < total) {
    if (options.signal?.aborted) throw new CancelledError();
    const window = store.page(vectors.count, WINDOW);
    const before = vectors.count;
    const matrix = await embedder.embed(window.map(embeddingText), 'passage', {
      signal: options.signal,
      onDone: (done) => done < window.length && report(before + done),
    });
    for (const [i, { id }] of window.entries()) checkVector(matrix, i, embedder.info.dimension, id);
    vectors.append(matrix);
    store.setMeta('vectors', String(vectors.count));
    report(vectors.count);
  }
}

function checkVector(matrix: Float32Array, row: number, dimension: number, id: string): void {
  const length = lengthOf(matrix.subarray(row * dimension, (row + 1) * dimension));
  if (!Number.isFinite(length) || length === 0)
    throw new RetrievalError(
      `passage "${id}": expected a finite vector with a direction, its length is ${length}`,
    );
}
