// The trainer and its checkpoints, held together with the ledger in the store: the store has the last word.

import { rm } from 'node:fs/promises';
import { IntegrityError } from '../../errors.js';
import { type Checkpoint, listCheckpoints, pruneCheckpoints, type Trainer } from '../../training/index.js';
import type { Learned } from '../offline/learned.js';
import { type Batch, givenIds, type Plan } from './batch.js';
import { newGuardState } from './collapse-guard.js';
import { checkpointsOf, type LoopHouse, UNPUBLISHED } from './house.js';
import type { StepReceipt } from './receipt.js';
import { documentOf, type LoopState, moved, STATE_DOCUMENT } from './state.js';

export interface StepToCommit {
  readonly batch: Batch;
  readonly plan: Plan;
  readonly learned: Learned;
  readonly metrics: Readonly<Record<string, number>>;
}

export class TrainerKeeper {
  #trainer: Trainer | null = null;

  constructor(private readonly house: LoopHouse) {}

  /**
   * The trainer at the ledger's step. What it did beyond, because a commit never reached the store, is forgotten.
   * @throws {IntegrityError} the checkpoint is not there
   */
  async at({ ledger }: LoopState): Promise<Trainer> {
    const open = this.#trainer;
    const isThere =
      open !== null &&
      open.step === (ledger?.trainerStep ?? 0) &&
      open.committed.step === open.step &&
      (ledger === null || open.committed.version === ledger.version);
    if (isThere) return open;
    await this.close();
    const from = ledger === null ? null : await this.#checkpoint(ledger.trainerStep, ledger.version);
    const trainer = await this.house.openTrainer(from);
    const { state, folder } = trainer.committed;
    if (trainer.criticChange !== null) this.#tellOfCritic(trainer);
    // The version names the adapter alone; a critic belongs to the state too.
    else if (ledger !== null && ledger.state !== '' && state !== ledger.state) {
      await trainer.close();
      throw new IntegrityError(`${folder} holds the state ${state}, expected ${ledger.state} of the ledger`);
    }
    this.#trainer = trainer;
    return trainer;
  }

  /** The next step, with the trainer's policy where the engine can sample from it. */
  async plan({ pass, cursor, seed, step }: LoopState, trainer: Trainer): Promise<Plan> {
    const { folder, version } = trainer.committed;
    const adapter = 'loop-training';
    const loaded = await this.house.engine.loadAdapter(adapter, folder, UNPUBLISHED);
    if (loaded.version !== version)
      throw new IntegrityError(`${folder}: the engine loaded version ${loaded.version}, expected ${version}`);
    return { step: step + 1, seed, adapter, place: { pass, cursor } };
  }

  /**
   * Makes a step durable: first the checkpoint, by one rename, then the ledger with the records, the adapter and the
   * loop's state in one transaction. A kill in between leaves a checkpoint that the ledger does not know.
   */
  async commit(state: LoopState, trainer: Trainer, done: StepToCommit): Promise<LoopState> {
    const { batch, plan, learned, metrics } = done;
    const parent = trainer.committed.version;
    // What was deleted while the step ran does not come back with its rollouts; the ledger counts them as deleted.
    for (const { record, notes, origin } of batch.rollouts)
      if (notes !== null) await this.house.store.putRollout(record, notes, origin.head.id);
    // Before the step is committed: what fails after it would have the old state written over the new one.
    await this.house.store.setGrades(
      batch.rollouts.map(({ record, scores, graded }) => ({
        id: record.id,
        value: scores.reward,
        ...graded,
      })),
    );
    const report = await trainer.commit(learned.carried());
    const checkpoint = report.folder.slice(checkpointsOf(this.house.folder).length + 1);
    const ledger = { trainerStep: report.step, version: report.version, checkpoint, state: report.state };
    const shown = batch.demonstrations.map(({ origin }) => origin.head.id);
    const next = moved(state, 'stepped', {
      step: plan.step,
      ledger,
      ...batch.place,
      stepsSinceGate: state.stepsSinceGate + 1,
    });
    const receipt: StepReceipt = {
      kind: 'loop-step',
      step: plan.step,
      trainerStep: report.step,
      seed: plan.seed,
      state: report.state,
      checkpoint,
      configDigest: this.house.configDigest,
      indexSnapshotId: this.house.training.retriever?.snapshotId ?? null,
      mode: this.house.settings.mode,
      asGiven: givenIds(batch),
      shown,
      metrics,
    };
    const ids = [...batch.rollouts.flatMap(({ record, origin }) => [record.id, origin.head.id]), ...shown];
    await this.house.store.commitStep({
      adapter: { digest: report.version, parentDigest: parent === report.version ? null : parent, receipt },
      trajectoryIds: [...new Set(ids)],
      documents: { [STATE_DOCUMENT]: documentOf(next) },
    });
    return next;
  }

  /** What changes where training goes back to a step, or to the nearest kept one before it. */
  async returnTo(state: LoopState, trainerStep: number): Promise<Partial<LoopState>> {
    await this.close();
    const { checkpoints } = await listCheckpoints(checkpointsOf(this.house.folder));
    const target = checkpoints.filter(({ manifest }) => manifest.step <= trainerStep).at(-1);
    if (target === undefined)
      return { ledger: null, stepsSinceGate: 0, guard: newGuardState(), stableStep: 0 };
    const { step, version } = target.manifest;
    const { ledger } = state;
    const known = ledger?.version === version && ledger.trainerStep === step ? ledger.state : '';
    return {
      ledger: { trainerStep: step, version, checkpoint: target.folder.split('/').at(-1) ?? '', state: known },
      stepsSinceGate: 0,
      stableStep: step,
      guard: newGuardState(),
    };
  }

  /** Keeps what the loop may come back to. */
  async prune({ ledger, published, stableStep, watch, confirmed }: LoopState): Promise<void> {
    const root = checkpointsOf(this.house.folder);
    const last = ledger?.trainerStep ?? 0;
    const { checkpoints } = await listCheckpoints(root);
    // Of a branch that was given up.
    for (const { folder, manifest } of checkpoints)
      if (manifest.step > last) await rm(folder, { recursive: true, force: true });
    const kept = published.slice(-this.house.settings.keepVersions).map(({ trainerStep }) => trainerStep);
    const stepOf = (wanted: string): number =>
      published.find(({ version }) => version === wanted)?.trainerStep ?? 0;
    const watched = watch === null ? [] : [watch.trainerStep, stepOf(watch.against)];
    const keep = [...kept, ...watched, stepOf(confirmed), stableStep];
    await pruneCheckpoints(root, { keepLast: 1, keep });
  }

  /** Stored answers that any step was trained on. One whose question alone was rolled out again is not among them. */
  async usedRecords(): Promise<Set<string>> {
    const { store } = this.house;
    const used = new Set<string>();
    for (const { digest, parentDigest, receipt } of await store.adapterHeads()) {
      const given = (receipt as Partial<StepReceipt> | null)?.asGiven;
      // Steps of earlier builds do not tell the two apart.
      const ids =
        given ?? (await store.lineOf(digest, parentDigest === null ? [] : [parentDigest]))[0]?.trajectoryIds;
      for (const id of ids ?? []) used.add(id);
    }
    return used;
  }

  async close(): Promise<void> {
    const trainer = this.#trainer;
    this.#trainer = null;
    await trainer?.close();
  }

  #tellOfCritic({ step, criticChange }: Trainer): void {
    const { algorithm } = this.house.settings;
    this.house.onNote(
      criticChange === 'begun'
        ? `the checkpoint of step ${step} has no critic, and ${algorithm} needs one: it begins anew`
        : `the critic of step ${step} is left out: ${algorithm} needs none`,
    );
  }

  async #checkpoint(step: number, version: string): Promise<Checkpoint> {
    const root = checkpointsOf(this.house.folder);
    const { checkpoints, faults } = await listCheckpoints(root);
    const found = checkpoints.find(({ manifest }) => manifest.step === step);
    if (found?.manifest.version === version) return found;
    const others = faults.map(({ reason }) => reason).join('; ');
    throw new IntegrityError(
      `${root}: the ledger ends at step ${step} with version ${version}, found ${found?.manifest.version ?? 'no such checkpoint'}${others === '' ? '' : ` (${others})`}`,
    );
  }
}
