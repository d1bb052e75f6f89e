import { UnavailableError } from '../../errors.js';
import { startPool, type TaskPool } from '../../runtime/index.js';
import type { PageBatch } from '../worker/page-task.js';
import type { PageOutcome } from './page-outcome.js';

/** A page whose parsing needs more than this ends its thread, and is left out. */
const HEAP_MEBIBYTES = 1024;
/** A batch asks for its cancelling between two pages; one page is bounded by its own limit. */
const CANCEL_GRACE_MS = 500;

type PageInput = PageBatch['pages'][number];

export interface PagePool {
  readonly threads: number;
  /** @throws {CancelledError | UnavailableError} */
  read(pages: readonly PageInput[], signal?: AbortSignal): Promise<PageOutcome[]>;
  close(): Promise<void>;
}

export interface PagePoolOptions {
  readonly threads: number;
  /** Longest time for the wikitext of one page. */
  readonly timeoutMs: number;
  /** Limit of a thread's JavaScript heap. */
  readonly heapMebibytes?: number;
}

export function startPagePool({
  threads,
  timeoutMs,
  heapMebibytes = HEAP_MEBIBYTES,
}: PagePoolOptions): PagePool {
  const pool: TaskPool<PageBatch, PageOutcome[], never> = startPool('retrieval/worker/page-task', {
    threads,
    maxHeapMebibytes: heapMebibytes,
    cancelGraceMs: CANCEL_GRACE_MS,
  });
  const run = (pages: readonly PageInput[], signal?: AbortSignal) =>
    pool.run({ pages, timeoutMs }, { signal });

  /** After a dead thread: each page alone, so that only the one that killed it is left out. */
  const readSingly = async (page: PageInput, signal?: AbortSignal): Promise<PageOutcome> => {
    try {
      return (await run([page], signal))[0] as PageOutcome;
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      // Where the pool itself is broken, this throws.
      await run([], signal);
      return { kind: 'leftOut', reason: `${page.where}: reading its wikitext takes too much memory` };
    }
  };

  return {
    threads,
    async read(pages, signal) {
      try {
        return await run(pages, signal);
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error;
      }
      const outcomes: PageOutcome[] = [];
      for (const page of pages) outcomes.push(await readSingly(page, signal));
      return outcomes;
    },
    close: () => pool.close(),
  };
}
