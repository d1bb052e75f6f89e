// Rollouts in idle time: any of them may be sent away at any step, and is then begun again with the same seed.

import { EngineAwayError, RAW_POLICY } from '../../engine/index.js';
import { CancelledError } from '../../errors.js';
import {
  createRolloutRunner,
  FailedSearch,
  FailedSearches,
  isUnaskable,
  type RolloutRequest,
} from '../../rollout/index.js';
import type { StoredMessage, TrajectoryRecord } from '../../trajectory/index.js';
import { eachOf } from '../../util/side-by-side.js';
import type { RolloutParts } from '../offline/lock-step-rollouts.js';
import type { Priority } from './priority.js';
import type { SearchOutages } from './search-outages.js';
import type { Unaskable } from './unaskable.js';

export interface IdleJob {
  readonly id: string;
  readonly groupId: string | null;
  readonly messages: readonly StoredMessage[];
  readonly seed: number;
  /** Name or version; null is the base model. */
  readonly adapter: string | null;
  /** 0 is greedy. */
  readonly temperature: number;
  /** Looked at before it is asked: who asked it first may have had it deleted since the job was made. */
  readonly isGone?: () => boolean;
}

export interface IdleRollouts {
  readonly priority: Priority;
  readonly parts: RolloutParts;
  readonly topK: number;
  /** Learns which conversations cannot be asked. */
  readonly unaskable: Unaskable;
  readonly onNote: (line: string) => void;
  /** Learns of searches that fail. */
  readonly outages: SearchOutages;
  /** Between looks whether searches that failed work again. */
  readonly searchPausesMs?: readonly number[];
}

/**
 * @returns records in the order of the jobs, none of which met a search that is away; null for a conversation that cannot be asked or is gone
 * @throws {CancelledError} the signal fired; {SearchesAwayError} searches fail and do not come back; {EngineAwayError}
 */
export async function rollIdle(
  house: IdleRollouts,
  jobs: readonly IdleJob[],
  signal: AbortSignal,
  onRecord: (done: number, at: number, record: TrajectoryRecord | null) => void = () => {},
): Promise<(TrajectoryRecord | null)[]> {
  const records: (TrajectoryRecord | null)[] = [];
  let done = 0;
  const ask = async (job: IdleJob, at: number, stop: AbortSignal): Promise<void> => {
    records[at] = await rollOne(house, job, stop).catch((error: Error) => notAsked(house, job, error));
    onRecord(++done, at, records[at] ?? null);
  };
  // As many as there are slots; how many of them may run side by side now, `open` decides.
  await eachOf(jobs, house.priority.users.info.maxSequences, ask, signal);
  return records;
}

/** @throws the error, where it is not the conversation's fault */
function notAsked({ unaskable, onNote }: IdleRollouts, { id, messages }: IdleJob, error: Error): null {
  if (!isUnaskable(error)) throw error;
  if (unaskable.add(messages)) onNote(`the question of ${id} is left out: ${error.message}`);
  return null;
}

async function rollOne(
  house: IdleRollouts,
  job: IdleJob,
  signal: AbortSignal,
): Promise<TrajectoryRecord | null> {
  const { retriever, end } = house.outages.hear(house.parts.retriever);
  try {
    return await rollUntilDone({ ...house, parts: { ...house.parts, retriever } }, job, signal);
  } finally {
    end();
  }
}

/** Null where it is gone. */
async function rollUntilDone(
  house: IdleRollouts,
  job: IdleJob,
  signal: AbortSignal,
): Promise<TrajectoryRecord | null> {
  const failed = new FailedSearches(house.parts.retriever, house.searchPausesMs);
  for (;;) {
    if (job.isGone?.() === true) return null;
    const { generator, yielded } = house.priority.training(signal);
    try {
      const record = await attempt(house, generator, job, failed, signal);
      if (record !== null) return record;
    } catch (error) {
      if (error instanceof FailedSearch) {
        await failed.after(error, signal);
        continue;
      }
      if (signal.aborted || !yielded()) throw error;
    }
    if (signal.aborted) throw new CancelledError();
    if (!yielded()) throw new EngineAwayError(`rollout ${job.id} was cancelled by the engine`);
  }
}

/** Null where it was cancelled. @throws {FailedSearch} */
async function attempt(
  { parts, topK }: IdleRollouts,
  generator: ReturnType<Priority['training']>['generator'],
  job: IdleJob,
  failed: FailedSearches,
  signal: AbortSignal,
): Promise<TrajectoryRecord | null> {
  const request: RolloutRequest = {
    id: job.id,
    ...(job.groupId === null ? {} : { groupId: job.groupId }),
    method: 'search-r1',
    messages: job.messages as RolloutRequest['messages'],
    sampling: { ...RAW_POLICY, temperature: job.temperature },
    seed: job.seed,
    adapter: job.adapter,
    topK,
    forceAnswer: false,
    keeping: null,
    signal,
  };
  for await (const event of createRolloutRunner({ ...parts, generator }).run(request)) {
    if (event.type === 'search.results') failed.check(event);
    if (event.type === 'done') return event.finish === 'cancelled' ? null : event.record;
  }
  return null;
}
