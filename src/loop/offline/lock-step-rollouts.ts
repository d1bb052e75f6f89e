// Rollouts that can be repeated bit for bit: an engine in lock-step mode, each rollout in a slot fixed beforehand, its
// sampler seeded by its own name.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Engine, type Generator, RAW_POLICY, withOpen } from '../../engine/index.js';
import { CancelledError, IntegrityError, InvalidInputError, UnavailableError } from '../../errors.js';
import type { Question } from '../../evaluation/index.js';
import {
  createRolloutRunner,
  FailedSearch,
  FailedSearches,
  isUnaskable,
  type MethodName,
  type RolloutRunner,
  type RolloutRunnerOptions,
} from '../../rollout/index.js';
import type { TrajectoryRecord } from '../../trajectory/index.js';
import { eachOf, sideBySide } from '../../util/side-by-side.js';

/** What rollouts are made of beside the engine. */
export type RolloutParts = Omit<RolloutRunnerOptions, 'generator' | 'onRecord'>;

export interface RolloutJob {
  readonly id: string;
  readonly question: Question;
  readonly groupId: string;
  readonly seed: number;
}

export interface LockStepOptions {
  /** In lock-step mode, with one version in use. */
  readonly engine: Engine;
  readonly parts: RolloutParts;
  readonly method: MethodName;
  /** Passages of a search. */
  readonly topK: number;
  /** Between looks whether searches that failed work again. */
  readonly searchPausesMs?: readonly number[];
}

export interface RollOptions {
  readonly signal?: AbortSignal;
  readonly onRecord?: (done: number) => void;
}

/** Ends a rollout whose prompt would now be given to the engine. */
class PromptFits extends Error {}

const ADAPTER = 'training';
/** Prompts that are encoded at once. */
const ENCODED_AT_ONCE = 8;
const MOST_TRIES = 3;
const WAIT_MS = 200;

export class LockStepRollouts {
  readonly #runners: readonly RolloutRunner[];

  constructor(private readonly options: LockStepOptions) {
    this.#runners = slotRunners(options.engine, options.parts);
  }

  /**
   * From now on this version is sampled from.
   * @throws {IntegrityError} the folder holds another version
   */
  async use(folder: string, version: string): Promise<void> {
    const loaded = await this.options.engine.loadAdapter(ADAPTER, folder, { replace: true });
    if (loaded.version !== version)
      throw new IntegrityError(`${folder}: the engine loaded version ${loaded.version}, expected ${version}`);
  }

  /**
   * The questions that can be asked, in their order: those whose prompts do not fit the window would end a run at the step that
   * draws them, now and whenever it goes on.
   * @throws {InvalidInputError} there are none; {CancelledError} the signal fired
   */
  async askable(
    questions: readonly Question[],
    { signal, onNote }: { readonly signal?: AbortSignal; readonly onNote?: (line: string) => void } = {},
  ): Promise<Question[]> {
    const { engine, parts, method } = this.options;
    const generator = withOpen(engine, async () => {
      throw new PromptFits();
    });
    const runner = createRolloutRunner({ ...parts, generator });
    const faults = new Map<Question, string>();
    const ask = async (question: Question, _at: number, stop: AbortSignal): Promise<void> => {
      const messages = [{ role: 'user' as const, content: question.question }];
      try {
        for await (const _ of runner.run({ method, messages, sampling: RAW_POLICY, signal: stop }));
      } catch (error) {
        if (isUnaskable(error)) faults.set(question, error.message);
        else if (!(error instanceof PromptFits)) throw error;
      }
    };
    await eachOf(questions, ENCODED_AT_ONCE, ask, signal);
    const first = questions.find((question) => faults.has(question));
    if (first === undefined) return [...questions];
    const why = `${faults.size} of ${questions.length} questions cannot be asked; the first, ${first.id}: ${faults.get(first)}`;
    if (faults.size === questions.length) throw new InvalidInputError(why);
    onNote?.(`left out: ${why}`);
    return questions.filter((question) => !faults.has(question));
  }

  /**
   * Rolls out at temperature 1 from the raw policy.
   * @returns records in the order of the jobs, none of which met a search that is away
   * @throws {CancelledError} the signal fired; {UnavailableError} the engine, or the search, does not come back
   */
  async roll(
    jobs: readonly RolloutJob[],
    { signal, onRecord }: RollOptions = {},
  ): Promise<TrajectoryRecord[]> {
    const records: TrajectoryRecord[] = [];
    let done = 0;
    const slots = this.#runners.map((runner, slot) => async (stop: AbortSignal) => {
      for (let job = slot; job < jobs.length; job += this.#runners.length) {
        records[job] = await this.#rollOne(runner, jobs[job] as RolloutJob, stop);
        onRecord?.(++done);
      }
    });
    await sideBySide(slots, signal);
    return records;
  }

  async #rollOne(runner: RolloutRunner, job: RolloutJob, signal: AbortSignal): Promise<TrajectoryRecord> {
    const failed = new FailedSearches(this.options.parts.retriever, this.options.searchPausesMs);
    for (let tries = 1; ; ) {
      try {
        return await this.#attempt(runner, job, failed, signal);
      } catch (error) {
        if (error instanceof FailedSearch) {
          await failed.after(error, signal);
          continue;
        }
        // The engine's worker died and comes back with its adapters; the same seed gives the same rollout again.
        if (!(error instanceof UnavailableError) || tries++ >= MOST_TRIES || signal.aborted) throw error;
        while (this.options.engine.state === 'restarting') await sleep(WAIT_MS);
      }
    }
  }

  async #attempt(
    runner: RolloutRunner,
    job: RolloutJob,
    failed: FailedSearches,
    signal: AbortSignal,
  ): Promise<TrajectoryRecord> {
    const { method, topK } = this.options;
    const { id, groupId, seed, question } = job;
    const rollout = runner.run({
      id,
      groupId,
      seed,
      method,
      topK,
      messages: [{ role: 'user', content: question.question }],
      sampling: RAW_POLICY,
      adapter: ADAPTER,
      forceAnswer: false,
      signal,
    });
    for await (const event of rollout) {
      if (event.type === 'search.results') failed.check(event);
      if (event.type !== 'done') continue;
      if (signal.aborted) throw new CancelledError();
      return event.record;
    }
    throw new UnavailableError(`rollout ${id} ended without a record`);
  }
}

/** A runner for each slot of an engine in lock-step mode. */
export const slotRunners = (engine: Engine, parts: RolloutParts): RolloutRunner[] =>
  Array.from({ length: engine.info.maxSequences }, (_, slot) =>
    createRolloutRunner({ ...parts, generator: inSlot(engine, slot) }),
  );

/** The engine with every sequence in one slot. */
const inSlot = (engine: Engine, slot: number): Generator =>
  withOpen(engine, (options) => engine.open({ ...options, slot }));
