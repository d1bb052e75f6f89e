// What the loop cannot do without, and has no part in: it waits for it, however long.

import { ScorerAwayError } from '../../reward/index.js';
import { SearchesAwayError } from '../offline/failed-searches.js';
import { StoreAwayError } from './patient-store.js';

export interface Away {
  readonly what: 'store' | 'searches' | 'scorer';
  /** For the status. */
  readonly waitsFor: string;
}

const SAID: readonly [new (message: string) => Error, Away['what'], string][] = [
  [StoreAwayError, 'store', 'the store is away'],
  [SearchesAwayError, 'searches', 'searches fail'],
  [ScorerAwayError, 'scorer', 'who tells what answers are worth is away'],
];

/** Null: the error has another cause. */
export function awayOf(error: Error): Away | null {
  const found = SAID.find(([kind]) => error instanceof kind);
  if (found === undefined) return null;
  const [, what, said] = found;
  return { what, waitsFor: `${said}: ${error.message}` };
}
