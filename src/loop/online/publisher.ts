// Publishes, keeps, rolls back and restores versions; each leaves the store, the disk and the engine agreeing.

import { NotFoundError } from '../../errors.js';
import { checkpointFolder } from '../../training/index.js';
import { checkpointsOf, type LoopHouse, versionsOf } from './house.js';
import type { LabelledAnswer } from './labels.js';
import { type StartVersion, Versions } from './publish.js';
import type { Receipt, StepReceipt } from './receipt.js';
import { type LoopState, moved, receiptDocument, STATE_DOCUMENT } from './state.js';
import { newSequentialState } from './statistics/sequential-test.js';
import { pruneVersions, sweepVersions, writeVersion } from './version-folder.js';
import { outcomesUnder } from './watch.js';

export class Publisher {
  readonly versions: Versions;

  constructor(
    private readonly house: LoopHouse,
    start: StartVersion,
  ) {
    this.versions = new Versions(house, start);
  }

  async save(state: LoopState, others: Readonly<Record<string, unknown>> = {}): Promise<void> {
    await this.house.store.putDocuments({ ...others, [STATE_DOCUMENT]: state });
  }

  trainerStepOf({ live, published }: LoopState): number {
    return published.findLast(({ version }) => version === live)?.trainerStep ?? 0;
  }

  /** The version to go back to: of a trial the live one, else the one that was live before. */
  before({ live, start, published, watch }: LoopState): string | null {
    if (watch !== null && watch.share < 1) return live;
    if (live === start) return null;
    const at = published.findLastIndex(({ version }) => version === live);
    return published[at - 1]?.version ?? start;
  }

  /**
   * Lets a candidate go live, or on trial where a share for that is configured. Also after a kill at any point either
   * the old version is live or the new one, whole.
   */
  async publish(
    state: LoopState,
    by: string,
    answers: readonly LabelledAnswer[],
    feedback: number,
  ): Promise<LoopState> {
    const { ledger, live } = state;
    if (ledger === null) throw new NotFoundError('there is no candidate to publish');
    const { folder, settings } = this.house;
    const swapBegan = Date.now();
    const from = checkpointFolder(checkpointsOf(folder), ledger.trainerStep);
    await writeVersion(versionsOf(folder), ledger.version, from);
    await this.versions.warm(await this.versions.ready(ledger.version));
    const isTrial = settings.canaryShare > 0;
    const watch = {
      version: ledger.version,
      against: live,
      trainerStep: ledger.trainerStep,
      share: isTrial ? settings.canaryShare : 1,
      since: Date.now(),
      feedback,
      test: newSequentialState(),
      counted: [],
      newer: [],
      older: isTrial ? [] : outcomesUnder(answers, live, settings.watchMaxPairs),
    };
    const receipt = await this.#receipt(state, by);
    // What the gate let pass is sound: training goes back no further, so that its checkpoint is not written over.
    const changes = { watch, refusalsInARow: 0, stableStep: ledger.trainerStep };
    const tried = moved(state, 'published', changes);
    const next = isTrial ? tried : this.#lived(tried, watch);
    await this.save(next, { [receiptDocument(ledger.version)]: receipt });
    if (!isTrial) await this.#switched(this.versions.nameOf(next.live), ledger.version, swapBegan);
    await this.#tidy(next);
    return next;
  }

  /** The watch ended well: what was on trial goes live. */
  async keep(state: LoopState): Promise<LoopState> {
    const { watch } = state;
    if (watch === null) return state;
    const next = { ...(watch.share < 1 ? this.#lived(state, watch) : state), watch: null };
    await this.save(next);
    const swapBegan = Date.now();
    await this.#switched(await this.versions.ready(next.live), next.live, swapBegan);
    await this.#tidy(next);
    return next;
  }

  /** New answers come from it now; the times say when it was loaded aside and when the alias had moved. */
  async #switched(name: string | null, version: string, swapBegan: number): Promise<void> {
    await this.versions.switchTo(name);
    this.house.onNote(`version ${version.slice(0, 12)} answers now`, {
      version,
      swapBegan,
      swapEnded: Date.now(),
    });
  }

  /** @throws {NotFoundError} the version was never live, or is gone */
  async rollBack(state: LoopState, target: string): Promise<LoopState> {
    const at = state.published.findLastIndex(({ version }) => version === target);
    if (at < 0 && target !== state.start)
      throw new NotFoundError(
        `version ${target} was not published; known are ${[state.start, ...state.published.map(({ version }) => version)].join(', ')}`,
      );
    const swapBegan = Date.now();
    const name = await this.versions.ready(target);
    const published = state.published.slice(0, at + 1);
    const isKnown = (version: string): boolean =>
      version === state.start || published.some((item) => item.version === version);
    const { counts, stretch } = state;
    const next: LoopState = {
      ...state,
      live: target,
      published,
      confirmed: isKnown(state.confirmed) ? state.confirmed : target,
      stretch: {
        ...stretch,
        publications: Math.max(0, stretch.publications - (state.published.length - published.length)),
      },
      watch: null,
      refusalsInARow: 0,
      counts: { ...counts, rolledBack: counts.rolledBack + 1 },
    };
    await this.save(next);
    await this.#switched(name, target, swapBegan);
    await this.versions.release(next);
    return next;
  }

  /** After a start: the version that was live last, or the newest one before it that is whole. */
  async restore(state: LoopState): Promise<LoopState> {
    for (const note of await sweepVersions(versionsOf(this.house.folder)))
      this.house.onNote(`ignored: ${note}`);
    let next = state;
    for (;;) {
      try {
        const name = await this.versions.ready(next.live);
        await this.versions.switchTo(name);
        return { ...next, watch: await this.#restoredWatch(next) };
      } catch (error) {
        this.house.onFailure(error as Error, `the start under version ${next.live}`);
        const before = this.before({ ...next, watch: null });
        if (before === null) throw error;
        const at = next.published.findLastIndex(({ version }) => version === before);
        next = { ...next, live: before, published: next.published.slice(0, at + 1), watch: null };
      }
    }
  }

  async #restoredWatch({ watch }: LoopState): Promise<LoopState['watch']> {
    if (watch === null) return null;
    const isThere = await this.versions.ready(watch.version).then(
      () => true,
      () => false,
    );
    return isThere ? watch : null;
  }

  #lived(state: LoopState, { version, trainerStep }: NonNullable<LoopState['watch']>): LoopState {
    const { stretch, counts, lastGate } = state;
    const isConfirmed = lastGate?.tests.some(({ name }) => name === 'confirmation') ?? false;
    return {
      ...state,
      live: version,
      published: [...state.published, { version, trainerStep, at: Date.now() }],
      stretch: { ...stretch, publications: isConfirmed ? 0 : stretch.publications + 1 },
      counts: { ...counts, published: counts.published + 1 },
    };
  }

  async #tidy(state: LoopState): Promise<void> {
    await this.versions.release(state);
    const kept = state.published.slice(-this.house.settings.keepVersions).map(({ version }) => version);
    const watched = state.watch === null ? [] : [state.watch.version, state.watch.against];
    await pruneVersions(
      versionsOf(this.house.folder),
      new Set([...kept, state.live, state.confirmed, ...watched]),
    );
  }

  /** All steps between the live version and the candidate. */
  async #receipt({ ledger, live, lastGate, start }: LoopState, by: string): Promise<Receipt> {
    const adapters = new Map((await this.house.store.adapters()).map((item) => [item.digest, item]));
    const steps: string[] = [];
    const ids: string[] = [];
    const seeds: number[] = [];
    let metrics: Receipt['metrics'] = {};
    let at = ledger?.version ?? null;
    while (at !== null && at !== live && at !== start && !steps.includes(at)) {
      const found = adapters.get(at);
      if (found === undefined) break;
      const receipt = found.receipt as Partial<StepReceipt> | null;
      if (steps.length === 0) metrics = receipt?.metrics ?? {};
      steps.unshift(at);
      ids.unshift(...found.trajectoryIds);
      if (receipt?.seed !== undefined) seeds.unshift(receipt.seed);
      at = found.parentDigest;
    }
    return {
      version: ledger?.version ?? live,
      parent: live,
      steps,
      trajectoryIds: [...new Set(ids)],
      seeds: [...new Set(seeds)],
      configDigest: this.house.configDigest,
      indexSnapshotId: this.house.training.retriever?.snapshotId ?? null,
      metrics,
      gate: (lastGate?.tests ?? []) as Receipt['gate'],
      publishedBy: by,
      publishedAt: Date.now(),
    };
  }
}
