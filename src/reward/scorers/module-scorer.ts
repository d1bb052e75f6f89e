// Rewards by a module of the user's own.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CancelledError, ConfigError, UnavailableError } from '../../errors.js';
import { sha256File } from '../../util/digest.js';
import { ScorerAwayError } from './ask-scorer.js';
import { checkedRewards, type ScoredItem, type Scorer } from './scorer.js';

/** What the module's default export is: one number, or null, for each item. */
export type ScoreFunction = (
  items: readonly ScoredItem[],
  signal: AbortSignal | undefined,
) => readonly (number | null)[] | Promise<readonly (number | null)[]>;

/** For the answers of a whole step, each of which it may ask somebody about. */
const TIMEOUT_MS = 600_000;

/**
 * Loads an ES module whose default export is a `ScoreFunction`. It runs in this process with all its rights, but nobody waits for it
 * without end.
 * @throws {ConfigError} it cannot be loaded, or exports something else
 */
export async function loadModuleScorer(path: string, timeoutMs = TIMEOUT_MS): Promise<Scorer> {
  const file = resolve(path);
  let digest: string;
  let loaded: { readonly default?: unknown };
  try {
    digest = await sha256File(file);
    loaded = (await import(pathToFileURL(file).href)) as typeof loaded;
  } catch (cause) {
    throw new ConfigError(`reward module ${file} cannot be loaded: ${(cause as Error).message}`, { cause });
  }
  const score = loaded.default;
  if (typeof score !== 'function')
    throw new ConfigError(
      `reward module ${file}: expected a function as default export, found ${typeof score}`,
    );
  return {
    name: `module:${file}#${digest.slice(0, 16)}`,
    async score(items, signal) {
      let rewards: unknown;
      try {
        rewards = await inTime((end) => (score as ScoreFunction)(items, end), file, timeoutMs, signal);
      } catch (cause) {
        if (cause instanceof ScorerAwayError || cause instanceof CancelledError) throw cause;
        throw new UnavailableError(`reward module ${file} failed: ${(cause as Error).message}`, { cause });
      }
      return checkedRewards(rewards, items.length, file);
    },
  };
}

/** @throws {ScorerAwayError} no answer in time; {CancelledError} the signal fired */
async function inTime<T>(
  work: (end: AbortSignal) => T | Promise<T>,
  file: string,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<T> {
  if (signal?.aborted) throw new CancelledError();
  const end = new AbortController();
  let giveUp = (_error: Error): void => {};
  const over = new Promise<never>((_, reject) => {
    giveUp = (error) => {
      reject(error);
      end.abort(error);
    };
  });
  const cancel = (): void => giveUp(new CancelledError());
  const timer = setTimeout(
    () => giveUp(new ScorerAwayError(`reward module ${file}: no answer within ${timeoutMs} ms`)),
    timeoutMs,
  );
  signal?.addEventListener('abort', cancel, { once: true });
  try {
    return await Promise.race([work(end.signal), over]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancel);
  }
}
