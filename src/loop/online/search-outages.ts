// Searches that fail while rollouts of the loop wait for them: known from the first try on that failed, though a rollout tries again
// for a minute before its round is given up.

import type { Retriever } from '../../retrieval/index.js';
import { FailedSearch } from '../../rollout/index.js';

export interface HeardSearches {
  /** As the one that was given. */
  readonly retriever: Retriever | null;
  /** The rollout has ended. */
  end(): void;
}

export class SearchOutages {
  /** Rollouts whose last search failed: what others are told from memory says nothing of theirs. */
  readonly #failing = new Set<object>();
  #why = '';
  #since: number | null = null;
  #answeredAt = Number.NEGATIVE_INFINITY;

  /** For the status; null: no rollout waits for a search. */
  get waitsFor(): string | null {
    return this.#failing.size === 0 ? null : this.#why;
  }

  /** Since when searches fail, also where nobody has searched for a while, in milliseconds since 1970; null: the last was answered. */
  get since(): number | null {
    return this.#since;
  }

  /** When searches were last known to work, by the clock of `performance`. */
  get answeredAt(): number {
    return this.#answeredAt;
  }

  /** The retriever of one rollout. */
  hear(retriever: Retriever | null): HeardSearches {
    const rollout = {};
    const end = (): void => void this.#failing.delete(rollout);
    if (retriever === null) return { retriever, end };
    const heard: Retriever = {
      get info() {
        return retriever.info;
      },
      get snapshotId() {
        return retriever.snapshotId;
      },
      search: async (queries, k, options) => {
        try {
          const found = await retriever.search(queries, k, options);
          this.#answered(rollout);
          return found;
        } catch (error) {
          if (!options?.signal?.aborted) this.#failed(rollout, queries[0] ?? '', error as Error);
          throw error;
        }
      },
      close: () => retriever.close(),
    };
    return { retriever: heard, end };
  }

  #failed(rollout: object, query: string, { message }: Error): void {
    if (this.#failing.size === 0) this.#why = `searches fail: ${new FailedSearch(query, message).message}`;
    this.#failing.add(rollout);
    this.#since ??= Date.now();
  }

  #answered(rollout: object): void {
    this.#failing.delete(rollout);
    if (this.#failing.size > 0) return;
    this.#since = null;
    this.#answeredAt = performance.now();
  }
}
