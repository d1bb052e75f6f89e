import { poolTask } from '../../runtime/index.js';
import type { PageOutcome } from '../wikipedia/page-outcome.js';
import { readPage } from '../wikipedia/read-page.js';

export interface PageBatch {
  readonly pages: readonly { readonly bytes: Uint8Array; readonly where: string }[];
  readonly timeoutMs: number;
}

/** Turns pages of a Wikipedia dump into passages. */
export default poolTask<PageBatch, PageOutcome[]>(({ pages, timeoutMs }, { throwIfCancelled }) =>
  pages.map(({ bytes, where }) => {
    throwIfCancelled();
    return readPage(bytes, where, timeoutMs);
  }),
);
