// Rewards by a module of the user's own.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ConfigError, UnavailableError } from '../../errors.js';
import { sha256File } from '../../util/digest.js';
import { checkedRewards, type ScoredItem, type Scorer } from './scorer.js';

/** What the module's default export is: one number, or null, for each item. */
export type ScoreFunction = (
  items: readonly ScoredItem[],
  signal: AbortSignal | undefined,
) => readonly (number | null)[] | Promise<readonly (number | null)[]>;

/**
 * Loads an ES module whose default export is a `ScoreFunction`. It runs in this process with all its rights.
 * @throws {ConfigError} it cannot be loaded, or exports something else
 */
export async function loadModuleScorer(path: string): Promise<Scorer> {
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
        rewards = await (score as ScoreFunction)(items, signal);
      } catch (cause) {
        throw new UnavailableError(`reward module ${file} failed: ${(cause as Error).message}`, { cause });
      }
      return checkedRewards(rewards, items.length, file);
    },
  };
}
