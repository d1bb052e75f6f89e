import { availableParallelism } from 'node:os';
import { startWorker, type WorkerClient } from '../../runtime/index.js';
import type { EmbedMethods, EmbedWorkerData } from '../worker/embed-worker.js';
import type { Embedder, EmbedOptions, TextKind } from './embedder.js';
import type { EncoderSource } from './encoder-source.js';

/** Texts that a thread gets at a time: long enough to fill batches, short enough that no thread waits long. */
const TEXTS_PER_CALL = 32;
const LOWEST_PRIORITY = 19;

export interface ParallelOptions {
  /** Threads, each with a session of its own; default: one for each core. */
  readonly workers?: number;
}

/**
 * An embedder for builds. Several sessions of one thread each use the cores better than one session of several
 * threads: nothing waits for the slowest part of an operator.
 */
export async function openParallelEmbedder(
  files: EncoderSource,
  options: ParallelOptions = {},
): Promise<Embedder> {
  const count = options.workers ?? availableParallelism();
  const data: EmbedWorkerData = { encoder: files, threads: 1 };
  // The first builds the graph where it is not there yet; the others find it.
  const start = () =>
    startWorker<EmbedMethods>('retrieval/worker/embed-worker', data, {
      niceness: LOWEST_PRIORITY,
      restart: false,
    });
  const workers = [await start()];
  const close = async (): Promise<void> => void (await Promise.all(workers.map((worker) => worker.close())));
  try {
    const others = await Promise.allSettled(Array.from({ length: count - 1 }, start));
    for (const other of others) if (other.status === 'fulfilled') workers.push(other.value);
    for (const other of others) if (other.status === 'rejected') throw other.reason;
    const dimension = await (workers[0] as WorkerClient<EmbedMethods>).call('dimension', undefined);
    return {
      info: { id: files.id, digest: files.digest, dimension },
      embed: (texts, kind, embedOptions) => embedInParallel(workers, texts, kind, dimension, embedOptions),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Longest texts first, so that the threads end at about the same time. */
async function embedInParallel(
  workers: readonly WorkerClient<EmbedMethods>[],
  texts: readonly string[],
  kind: TextKind,
  dimension: number,
  { signal, onDone }: EmbedOptions = {},
): Promise<Float32Array> {
  const order = texts.map((_, row) => row).sort((a, b) => lengthAt(texts, b) - lengthAt(texts, a) || a - b);
  const matrix = new Float32Array(texts.length * dimension);
  let next = 0;
  let done = 0;
  const drain = async (worker: WorkerClient<EmbedMethods>): Promise<void> => {
    while (next < order.length) {
      const rows = order.slice(next, next + TEXTS_PER_CALL);
      next += rows.length;
      const part = await worker.call(
        'embed',
        { texts: rows.map((row) => texts[row] as string), kind },
        { signal },
      );
      for (const [i, row] of rows.entries())
        matrix.set(part.subarray(i * dimension, (i + 1) * dimension), row * dimension);
      done += rows.length;
      onDone?.(done);
    }
  };
  await Promise.all(workers.map(drain));
  return matrix;
}

function lengthAt(texts: readonly string[], row: number): number {
  return (texts[row] as string).length;
}
