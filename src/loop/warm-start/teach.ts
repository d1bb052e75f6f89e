// Runs a script as a real rollout: the runner asks the teacher for each turn, searches, observes and records.

import { RAW_POLICY } from '../../engine/index.js';
import { ContextLengthError } from '../../errors.js';
import type { Passage } from '../../retrieval/index.js';
import {
  createRolloutRunner,
  FailedSearch,
  FailedSearches,
  type MethodName,
  type RolloutRequest,
  type RolloutRunnerOptions,
} from '../../rollout/index.js';
import { audit, type TrajectoryRecord } from '../../trajectory/index.js';
import { GiveUp, type Script } from './scripts.js';
import { type SeenPassage, seenPassages } from './support.js';
import { createTeacherGenerator, type Teacher } from './teacher-generator.js';

/** What rollouts are made of, without a generator; `info` is that of the policy that will be trained. */
export type TeachingHouse = Omit<RolloutRunnerOptions, 'generator' | 'onRecord'> & {
  readonly info: Parameters<typeof createTeacherGenerator>[0]['info'];
  /** Width of the retriever's searches of its graph; null where it has none. */
  readonly searchWidth?: number | null;
  /** Between looks whether searches that failed work again. */
  readonly searchPausesMs?: readonly number[];
};

export interface Lesson {
  readonly id: string;
  readonly method: MethodName;
  /** The last one of the user is the question. */
  readonly messages: RolloutRequest['messages'];
  readonly topK: number;
  /** Begins anew: what it returns writes a turn, and gets what the last search showed; null at the first turn. */
  readonly teacher: () => (seen: readonly SeenPassage[] | null) => string;
}

/**
 * The record of one taught rollout, which met no search that is away: it is begun again once searches work.
 * @throws {GiveUp} the teacher could not go on, or the record is not one to learn from
 * @throws {UnavailableError} searches fail and do not come back; {CancelledError} the signal fired
 */
export async function teach(
  house: TeachingHouse,
  lesson: Lesson,
  signal: AbortSignal = new AbortController().signal,
): Promise<TrajectoryRecord> {
  const failed = new FailedSearches(house.retriever, house.searchPausesMs);
  for (;;) {
    try {
      return await attempt(house, lesson, failed, signal);
    } catch (error) {
      if (error instanceof ContextLengthError) throw new GiveUp('it does not fit the window');
      if (!(error instanceof FailedSearch)) throw error;
      await failed.after(error, signal);
    }
  }
}

/** @throws {FailedSearch} */
async function attempt(
  house: TeachingHouse,
  lesson: Lesson,
  failed: FailedSearches,
  signal: AbortSignal,
): Promise<TrajectoryRecord> {
  let found: readonly Passage[] | null = null;
  const write = lesson.teacher();
  const teacher: Teacher = (appended) =>
    write(found === null || lesson.method !== 'search-r1' ? null : seenPassages(found, appended));
  const generator = createTeacherGenerator({
    tokenizer: house.tokenizer,
    info: house.info,
    teacher: () => teacher,
  });
  const rollout = createRolloutRunner({ ...house, generator }).run({
    id: lesson.id,
    method: lesson.method,
    messages: lesson.messages,
    sampling: { ...RAW_POLICY, temperature: 0 },
    topK: lesson.topK,
    forceAnswer: false,
    signal,
  });
  for await (const event of rollout) {
    if (event.type === 'search.results') {
      failed.check(event);
      // Searches work, and this one does not.
      if (event.error !== null) throw new GiveUp(`the search failed: ${event.error}`);
      found = event.passages;
    } else if (event.type === 'done') return checked(event.record, house);
  }
  throw new GiveUp('the rollout ended without a record');
}

/** A script as a teacher: each turn is the script's next one. */
export function teacherOf(begin: () => Script): Lesson['teacher'] {
  return () => {
    const script = begin();
    return (seen) => {
      const { value, done } = seen === null ? script.next([]) : script.next(seen);
      if (done === true) throw new GiveUp('the script ended before its rollout');
      return value as string;
    };
  };
}

function checked(record: TrajectoryRecord, house: TeachingHouse): TrajectoryRecord {
  if (record.stop !== 'answer') throw new GiveUp(`the rollout ended by "${record.stop}"`);
  if (record.invalidActions > 0) throw new GiveUp('a turn of the teacher was no valid action');
  const fault = audit(record, house.tokenizer)[0];
  if (fault !== undefined) throw new GiveUp(`audit, ${fault.rule}: ${fault.message}`);
  return record;
}
