// What the loop cannot do without, and has no part in: it waits for it, however long. Said here alone, for all who meet an error.

import { EngineAwayError } from '../../engine/index.js';
import {
  ConfigError,
  FileFormatError,
  IntegrityError,
  InvalidInputError,
  OverloadedError,
  UnavailableError,
} from '../../errors.js';
import { ScorerAwayError } from '../../reward/index.js';
import { SearchesAwayError } from '../../rollout/index.js';
import { StoreAwayError } from './patient-store.js';

export interface Away {
  readonly what: 'store' | 'searches' | 'engine' | 'scorer' | 'signal';
  /** For all questions alike: another one is no help. */
  readonly isOfAll: boolean;
  /** For the status. */
  readonly waitsFor: string;
  /** Somebody should look: not where users merely leave no room, or nothing could be learned from these answers. */
  readonly isAlarm: boolean;
}

/** Of a whole step nothing could be used: who says what answers are worth knew nothing of any, or all were too long. */
export class UselessStepError extends Error {}

const SAID: readonly [abstract new (...given: never[]) => Error, Away['what'], string][] = [
  [StoreAwayError, 'store', 'the store is away'],
  [SearchesAwayError, 'searches', 'searches fail'],
  [EngineAwayError, 'engine', 'the engine is away'],
  // Of users, whom it serves first.
  [OverloadedError, 'engine', 'the engine is full'],
  [ScorerAwayError, 'scorer', 'who tells what answers are worth is away'],
  [UselessStepError, 'signal', 'nothing is learned'],
];

/** Null: the error has another cause. */
export function awayOf(error: Error): Away | null {
  const found = SAID.find(([kind]) => error instanceof kind);
  if (found === undefined) return null;
  const [, what, said] = found;
  return {
    what,
    isOfAll: what !== 'scorer' && what !== 'signal',
    waitsFor: `${said}: ${error.message}`,
    isAlarm: what !== 'signal' && !(error instanceof OverloadedError),
  };
}

/** Whether the same may go well later, though nothing is changed. */
export const mayPass = (error: Error): boolean =>
  error instanceof UnavailableError || error instanceof OverloadedError;

/** Whether it stays until somebody changes a setting or a file. */
export const isLasting = (error: unknown): boolean =>
  [ConfigError, InvalidInputError, IntegrityError, FileFormatError].some((kind) => error instanceof kind);
