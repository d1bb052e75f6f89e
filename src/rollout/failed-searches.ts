// A search that fails is an observation to whoever answers a user; to learn from it, or to judge by it, would be to learn what an
// outage looks like. So a rollout with such a search is no rollout: it is begun again once searches work, or given up.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { CancelledError, UnavailableError } from '../errors.js';
import type { Retriever } from '../retrieval/index.js';

/** Ends a rollout one of whose searches failed after all its tries. */
export class FailedSearch extends Error {
  constructor(
    readonly query: string,
    why: string,
  ) {
    super(`the search for "${query.slice(0, MOST_SHOWN)}" failed: ${why}`);
  }
}

/** Searches fail, and do not come back while one rollout waits for them: nothing that it did is at fault. */
export class SearchesAwayError extends UnavailableError {}

const MOST_SHOWN = 100;
/** Between looks whether searches work again, together a minute. */
const PAUSES_MS: readonly number[] = [1000, 2000, 4000, 8000, 16_000, 32_000];
/** Rollouts that a query must end, while others are answered, to count as one that is never answered. */
const REFUSALS = 2;

/** Those of one rollout. */
export class FailedSearches {
  readonly #refusals = new Map<string, number>();
  #pauses = 0;

  constructor(
    private readonly retriever: Pick<Retriever, 'search'> | null,
    private readonly pausesMs: readonly number[] = PAUSES_MS,
  ) {}

  /**
   * Looks at what came of a search. Where others are answered and this one never is, that is the policy's own doing, and stays an
   * observation.
   * @throws {FailedSearch}
   */
  check({ query, error }: { readonly query: string; readonly error: string | null }): void {
    if (error !== null && (this.#refusals.get(query) ?? 0) < REFUSALS) throw new FailedSearch(query, error);
  }

  /**
   * Resolves when the rollout may be begun again.
   * @throws {SearchesAwayError} they do not come back; {CancelledError} the signal fired
   */
  async after(failure: FailedSearch, signal: AbortSignal): Promise<void> {
    while (!(await this.#works(signal))) {
      const pause = this.pausesMs[this.#pauses++];
      if (pause === undefined) throw new SearchesAwayError(failure.message, { cause: failure });
      await sleep(pause, undefined, { signal }).catch(() => {});
      if (signal.aborted) throw new CancelledError();
    }
    this.#refusals.set(failure.query, (this.#refusals.get(failure.query) ?? 0) + 1);
  }

  async #works(signal: AbortSignal): Promise<boolean> {
    try {
      // Nobody asked it before: what is kept of earlier queries would hide that the embedder is away.
      await this.retriever?.search([`history ${randomUUID()}`], 1, { signal });
      return true;
    } catch {
      if (signal.aborted) throw new CancelledError();
      return false;
    }
  }
}
