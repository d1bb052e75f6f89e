// Rewards that others compute: an answer with its evidence in, a number out.

import { IntegrityError } from '../../errors.js';
import type { TrajectoryRecord } from '../../trajectory/index.js';

/** An answer to be judged. */
export interface ScoredItem {
  readonly id: string;
  readonly question: string;
  readonly answer: string | null;
  /** Empty where none is known. */
  readonly goldAnswers: readonly string[];
  readonly record: TrajectoryRecord;
}

export interface Scorer {
  /** What it is and how it is set; changes when its rewards may. */
  readonly name: string;
  /**
   * One reward for each item, in their order; null where there is no telling.
   * @throws {UnavailableError} the one that computes them cannot be had; {IntegrityError} it gave something else;
   * {RefusedError} it does not take these items
   */
  score(items: readonly ScoredItem[], signal?: AbortSignal): Promise<(number | null)[]>;
}

/**
 * Rewards as somebody gave them.
 * @throws {IntegrityError} not one finite number or null for each item
 */
export function checkedRewards(value: unknown, count: number, where: string): (number | null)[] {
  if (!Array.isArray(value) || value.length !== count)
    throw new IntegrityError(
      `${where}: expected ${count} rewards, received ${Array.isArray(value) ? value.length : typeof value}`,
    );
  return value.map((reward: unknown, at) => {
    if (reward === null || (typeof reward === 'number' && Number.isFinite(reward))) return reward;
    throw new IntegrityError(
      `${where}: reward ${at}: expected a finite number or null, received ${String(reward)}`,
    );
  });
}

/** What leaves the process of an item: texts, no ids of tokens. */
export function plainItem({ id, question, answer, goldAnswers, record }: ScoredItem) {
  return {
    id,
    question,
    answer,
    golden_answers: goldAnswers,
    method: record.method,
    stop: record.stop,
    searches: record.searches.map(({ query, passageIds }) => ({ query, passage_ids: passageIds })),
    observations: record.observations.map(({ kind, text }) => ({ kind, text })),
    adapter_version: record.versions[0]?.adapterVersion ?? null,
  };
}
