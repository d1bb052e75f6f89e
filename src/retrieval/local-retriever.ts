import { CancelledError, InvalidInputError, RetrievalError, UnavailableError } from '../errors.js';
import { startWorker } from '../runtime/index.js';
import type { EncoderSource } from './embedder/encoder-source.js';
import type { Retriever } from './retriever.js';
import type { IndexState, SearchMethods, SearchWorkerData } from './worker/messages.js';

export interface LocalRetrieverOptions extends Omit<SearchWorkerData, 'encoder'> {
  /** Finds the embedding model; BM25 needs none. */
  readonly locateEncoder: () => Promise<EncoderSource>;
  /** Longest wait for one search. */
  readonly timeoutMs: number;
}

const MAX_K = 1000;

/**
 * Opens an index in a worker thread of its own. When that thread dies, running searches fail with
 * RetrievalError and it is started again with back-off. It follows changes that others make to the index on disk.
 * @throws {NotFoundError | IntegrityError | UnavailableError} the index cannot be used as it is
 */
export async function openLocalRetriever(options: LocalRetrieverOptions): Promise<Retriever> {
  const { timeoutMs, locateEncoder, ...settings } = options;
  const { kind } = settings;
  const data: SearchWorkerData = { ...settings, encoder: kind === 'bm25' ? null : await locateEncoder() };
  const worker = await startWorker<SearchMethods>('retrieval/worker/search-worker', data);
  let state: IndexState = await worker.call('state', undefined);

  return {
    get info() {
      return { kind, name: state.name, passageCount: state.passageCount };
    },
    get snapshotId() {
      return state.snapshotId;
    },
    async search(queries, k, { signal } = {}) {
      checkK(k);
      if (signal?.aborted) throw new CancelledError();
      const timeout = AbortSignal.timeout(timeoutMs);
      const either = signal ? AbortSignal.any([signal, timeout]) : timeout;
      const search = worker.call('search', { queries, k }, { signal: either });
      try {
        const answer = await Promise.race([search, rejection(either)]);
        state = answer.state;
        return answer.passages;
      } catch (error) {
        if (signal?.aborted) throw new CancelledError();
        if (timeout.aborted)
          throw new RetrievalError(`search of index "${state.name}": no answer within ${timeoutMs} ms`);
        return asRetrievalError(error);
      } finally {
        // The worker still answers a search that was given up.
        search.catch(() => {});
      }
    },
    close: () => worker.close(),
  };
}

export function checkK(k: number): void {
  if (!Number.isInteger(k) || k < 1 || k > MAX_K)
    throw new InvalidInputError(`k: expected a whole number from 1 to ${MAX_K}, came ${k}`, 'k');
}

function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function asRetrievalError(error: unknown): never {
  if (error instanceof UnavailableError)
    throw new RetrievalError(`the retriever is not available: ${error.message}`, { cause: error });
  throw error;
}
