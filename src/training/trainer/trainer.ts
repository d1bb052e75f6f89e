// The trainer for the rest of the house: steps of one run in a thread of the pool. The thread may die at any moment;
// what it had since the last commit is then done again, with the same result.

import { UnavailableError } from '../../errors.js';
import { startPool, type TaskPool } from '../../runtime/index.js';
import { holdsCritic, readState } from '../checkpoint/state-files.js';
import type { Checkpoint } from '../checkpoint/store.js';
import type {
  Carried,
  CommitReport,
  SessionPoint,
  StepReport,
  StepWork,
  TrainerProgress,
  TrainerResult,
  TrainerTask,
} from './messages.js';

export interface TrainerOptions<Spec> {
  /** Path below src/ of a file whose default export is a `trainerTask`; or an absolute file. */
  readonly entry: string;
  readonly spec: Spec;
  /** Folder of the run's checkpoints. */
  readonly root: string;
  readonly configDigest: string;
  /** Where to go on; null begins anew. */
  readonly from: Checkpoint | null;
  /**
   * Whether the spec has a critic. Where it is said, a checkpoint of a run that had none, or one, is gone on with too;
   * else such a checkpoint is refused at the first step.
   */
  readonly critic?: boolean;
  readonly niceness?: number;
  /** Time that a running micro-batch gets to end when a step is cancelled, before its thread is stopped. */
  readonly cancelGraceMs?: number;
}

export interface StepOptions {
  readonly signal?: AbortSignal;
  /** Tokens that went through the model. */
  readonly onTokens?: (tokens: number) => void;
}

export interface Trainer {
  /** Steps done. */
  readonly step: number;
  /** The last checkpoint. */
  readonly committed: CommitReport;
  /** As the last checkpoint holds it; empty at the beginning. */
  readonly carried: Carried;
  /** What became of the critic where the checkpoint was trained otherwise: it begins anew, or was left out. */
  readonly criticChange: 'begun' | 'left out' | null;
  /**
   * Runs one step from where the last one ended. After an error the state is as before.
   * @throws {NonFiniteError} a number is not finite; says which
   * @throws {CancelledError} the signal fired
   * @throws {UnavailableError} the thread died several times over the same step
   */
  run(work: StepWork, options?: StepOptions): Promise<StepReport>;
  /** Makes the steps so far durable, with what the run carries on. */
  commit(carried?: Carried): Promise<CommitReport>;
  close(): Promise<void>;
}

/** A step over which the thread dies this often is given up. */
const MOST_DEATHS = 3;

export async function openTrainer<Spec>(options: TrainerOptions<Spec>): Promise<Trainer> {
  const { entry, niceness, cancelGraceMs } = options;
  const pool = startPool<TrainerTask<Spec>, TrainerResult, TrainerProgress>(entry, {
    threads: 1,
    ...(niceness === undefined ? {} : { niceness }),
    ...(cancelGraceMs === undefined ? {} : { cancelGraceMs }),
  });
  try {
    const trainer = new PoolTrainer(pool, options);
    await trainer.open();
    return trainer;
  } catch (error) {
    await pool.close();
    throw error;
  }
}

class PoolTrainer<Spec> implements Trainer {
  #committed: CommitReport | null = null;
  #state = '';
  #carried: Carried = {};
  #criticChange: Trainer['criticChange'] = null;
  #step = 0;
  /** Steps since the last commit. */
  #since: StepWork[] = [];

  constructor(
    private readonly pool: TaskPool<TrainerTask<Spec>, TrainerResult, TrainerProgress>,
    private readonly options: TrainerOptions<Spec>,
  ) {}

  async open(): Promise<void> {
    const { spec, root, configDigest, from, critic } = this.options;
    if (from === null) {
      const task = { kind: 'begin', session: root, spec, root, configDigest } as const;
      this.#committed = (await this.pool.run(task)) as CommitReport;
    } else {
      const { folder, manifest } = from;
      const written = await readState(folder);
      this.#carried = written.carried;
      if (critic === undefined || critic === holdsCritic(written)) {
        const { step, version } = manifest;
        this.#committed = { folder, step, version, state: written.state };
      } else {
        this.#criticChange = critic ? 'begun' : 'left out';
        const task = { kind: 'adopt', session: root, spec, folder } as const;
        this.#committed = (await this.pool.run(task)) as CommitReport;
      }
    }
    this.#rewind();
  }

  get step(): number {
    return this.#step;
  }

  get carried(): Carried {
    return this.#carried;
  }

  get criticChange(): Trainer['criticChange'] {
    return this.#criticChange;
  }

  get committed(): CommitReport {
    if (this.#committed === null) throw new UnavailableError('the trainer has not started');
    return this.#committed;
  }

  async run(work: StepWork, options: StepOptions = {}): Promise<StepReport> {
    const report = await this.#surviving(() => this.#runOnce(work, options), options.signal);
    this.#since.push(work);
    return report;
  }

  async commit(carried: Carried = this.#carried): Promise<CommitReport> {
    const { spec, root, configDigest } = this.options;
    const report = await this.#surviving(async () => {
      const { committed } = this;
      const task = { kind: 'commit', session: root, spec, root, configDigest, carried } as const;
      return (await this.pool.run({ ...task, from: this.#standsAt, committed })) as CommitReport;
    });
    this.#committed = report;
    this.#carried = carried;
    this.#since = [];
    return report;
  }

  close(): Promise<void> {
    return this.pool.close();
  }

  get #standsAt(): SessionPoint {
    return { step: this.#step, state: this.#state };
  }

  async #runOnce(work: StepWork, { signal, onTokens }: StepOptions): Promise<StepReport> {
    const { spec, root } = this.options;
    const { committed } = this;
    const report = (await this.pool.run(
      { kind: 'step', session: root, spec, from: this.#standsAt, committed, work },
      {
        ...(signal === undefined ? {} : { signal }),
        ...(onTokens === undefined ? {} : { onProgress: ({ tokens }: TrainerProgress) => onTokens(tokens) }),
      },
    )) as StepReport;
    this.#state = report.state;
    this.#step = report.step;
    return report;
  }

  /** Where the thread died, the steps since the last commit are done again first. */
  async #surviving<Result>(act: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    for (let deaths = 0; ; ) {
      try {
        if (deaths > 0) {
          this.#rewind();
          for (const work of this.#since) await this.#runOnce(work, signal === undefined ? {} : { signal });
        }
        return await act();
      } catch (error) {
        if (!(error instanceof UnavailableError) || signal?.aborted || ++deaths >= MOST_DEATHS) throw error;
      }
    }
  }

  #rewind(): void {
    this.#state = this.committed.state;
    this.#step = this.committed.step;
  }
}
