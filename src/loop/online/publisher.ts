// Publishes, keeps, rolls back and restores versions; each leaves the store, the disk and the engine agreeing.

import { FileFormatError, IntegrityError, NotFoundError } from '../../errors.js';
import { checkpointFolder } from '../../training/index.js';
import { beginWatch, type Heard, hasStood } from './begin-watch.js';
import { checkpointsOf, type LoopHouse, versionsOf } from './house.js';
import { type StartVersion, Versions } from './publish.js';
import type { Receipt, StepReceipt } from './receipt.js';
import {
  documentOf,
  type LoopState,
  moved,
  receiptDocument,
  STATE_DOCUMENT,
  USED_DOCUMENT,
  usedOf,
} from './state.js';
import { checkVersion, pruneVersions, sweepVersions, writeVersion } from './version-folder.js';

/** Writes the state down, with other documents in one; what it is from then on. */
export type Commit = (next: LoopState, others?: Readonly<Record<string, unknown>>) => Promise<void>;

export interface Rollback {
  readonly reason: string;
  readonly by: string | null;
  /** Where the target's files are damaged, the newest one before it that is whole will do. */
  readonly mayBeOlder: boolean;
  /** Users found it worse; else somebody ordered it, or records of it were deleted. */
  readonly isVerdict: boolean;
  /** What of training goes back too: written down in one with the choice, so that no kill parts them. */
  returnTo(next: LoopState): Promise<Partial<LoopState>>;
  readonly commit: Commit;
}

export class Publisher {
  readonly versions: Versions;
  /** As they were written last. */
  #used: readonly string[] | null = null;

  constructor(
    private readonly house: LoopHouse,
    start: StartVersion,
  ) {
    this.versions = new Versions(house, start);
  }

  async save(state: LoopState, others: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const { used } = state.stretch;
    const changed = used === this.#used ? {} : { [USED_DOCUMENT]: usedOf(state) };
    await this.house.store.putDocuments({ ...others, ...changed, [STATE_DOCUMENT]: documentOf(state) });
    this.#used = used;
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
    by: string | null,
    heard: Heard,
    confirmedBy: readonly string[] | null,
    commit: Commit,
  ): Promise<void> {
    const { ledger } = state;
    if (ledger === null) throw new NotFoundError('there is no candidate to publish');
    const { folder, settings } = this.house;
    const swapBegan = Date.now();
    const from = checkpointFolder(checkpointsOf(folder), ledger.trainerStep);
    await writeVersion(versionsOf(folder), ledger.version, from);
    await this.versions.warm(await this.versions.ready(ledger.version));
    const candidate = {
      version: ledger.version,
      trainerStep: ledger.trainerStep,
      confirmedBy: confirmedBy === null ? null : [...confirmedBy],
    };
    const watch = beginWatch(candidate, state, heard, settings);
    const receipt = await this.#receipt(state, by);
    // What the gate let pass is sound: training goes back no further, so that its checkpoint is not written over.
    const changes = {
      watch,
      passed: null,
      refusalsInARow: 0,
      returns: 0,
      rolledBackInARow: hasStood(state, settings) ? 0 : state.rolledBackInARow,
      stableStep: ledger.trainerStep,
    };
    const tried = moved(state, 'published', changes);
    const isTrial = watch.share < 1;
    const next = isTrial ? tried : this.#lived(tried, watch);
    await commit(next, { [receiptDocument(ledger.version)]: receipt });
    if (!isTrial) await this.#switched(this.versions.nameOf(next.live), ledger.version, swapBegan);
    await this.#tidy(next);
  }

  /** The watch ended well: what was on trial goes live. */
  async keep(state: LoopState, commit: Commit): Promise<void> {
    const { watch } = state;
    if (watch === null) return;
    const isTrial = watch.share < 1;
    const next = { ...(isTrial ? this.#lived(state, watch) : state), watch: null, rolledBackInARow: 0 };
    const swapBegan = Date.now();
    const name = isTrial ? await this.versions.ready(next.live) : null;
    await commit(next);
    if (isTrial) await this.#switched(name, next.live, swapBegan);
    await this.#tidy(next);
  }

  /** Whether answers come from the version that is live by the state: not where a switch failed, or the engine lost it. */
  isShown({ live }: Pick<LoopState, 'live'>): boolean {
    const { liveAdapter } = this.house.engine;
    if ((liveAdapter?.name ?? null) !== this.versions.nameOf(live)) return false;
    // The first one is not the loop's to load.
    return live === this.versions.start.version || liveAdapter?.fault === null;
  }

  async show(state: Pick<LoopState, 'live'>): Promise<void> {
    if (!this.isShown(state)) await this.versions.switchTo(await this.versions.ready(state.live));
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

  /**
   * Makes a version live again that was before.
   * @throws {NotFoundError} the version was never live, or is gone
   */
  async rollBack(
    state: LoopState,
    wanted: string,
    { reason, by, mayBeOlder, isVerdict, returnTo, commit }: Rollback,
  ): Promise<void> {
    const at = state.published.findLastIndex(({ version }) => version === wanted);
    if (at < 0 && wanted !== state.start)
      throw new NotFoundError(
        `version ${wanted} was not published; known are ${[state.start, ...state.published.map(({ version }) => version)].join(', ')}`,
      );
    const swapBegan = Date.now();
    const { version: target, name } = mayBeOlder
      ? await this.#newestWhole(state, wanted, 'the way back to')
      : { version: wanted, name: await this.versions.ready(wanted) };
    const { counts } = state;
    const back: LoopState = {
      ...this.#backAt(state, target),
      passed: null,
      refusalsInARow: 0,
      returns: 0,
      rolledBackInARow: state.rolledBackInARow + Number(isVerdict),
      counts: { ...counts, rolledBack: counts.rolledBack + 1 },
    };
    const next = { ...back, ...(await returnTo(back)) };
    const rolledBack = { reason, by, at: Date.now() };
    const receipts: Record<string, unknown> = {};
    for (const name of takenBack(state, next).map(receiptDocument)) {
      const receipt = (await this.house.store.readDocument(name)) as Receipt | null;
      if (receipt !== null) receipts[name] = { ...receipt, rolledBack };
    }
    await commit(next, receipts);
    await this.#switched(name, target, swapBegan);
    await this.#tolerant(this.versions.release(next));
  }

  /**
   * After a start: the version that was live last, or the newest one before it that is whole.
   * @throws what is no damage: a restarting engine or a setting that is too small says nothing of the files, and to go
   *   back for it would forget versions for good
   */
  async restore(state: LoopState): Promise<LoopState> {
    for (const note of await sweepVersions(versionsOf(this.house.folder)))
      this.house.onNote(`ignored: ${note}`);
    const { version, name } = await this.#newestWhole(state, state.live, 'the start under');
    const next = version === state.live ? state : this.#backAt(state, version);
    await this.versions.switchTo(name);
    return {
      ...next,
      confirmed: (await this.#isWhole(next.confirmed)) ? next.confirmed : next.live,
      watch: await this.#restoredWatch(next),
    };
  }

  /** From a version back to the start the first one whose files are whole, loaded. @throws what is no damage */
  async #newestWhole(
    state: LoopState,
    from: string,
    doing: string,
  ): Promise<{ readonly version: string; readonly name: string | null }> {
    for (let version = from; ; ) {
      try {
        return { version, name: await this.versions.ready(version) };
      } catch (error) {
        const before = this.before({ ...state, live: version, watch: null });
        if (!isDamage(error) || before === null) throw error;
        this.house.onFailure(error as Error, `${doing} version ${version}`);
        version = before;
      }
    }
  }

  /** Whether the next candidates can be compared with it. */
  async #isWhole(version: string): Promise<boolean> {
    if (version === this.versions.start.version) return true;
    return unlessDamaged(checkVersion(versionsOf(this.house.folder), version));
  }

  async #restoredWatch({ watch }: LoopState): Promise<LoopState['watch']> {
    if (watch === null) return null;
    for (const version of [watch.version, watch.against])
      if (!(await unlessDamaged(this.versions.ready(version)))) return null;
    return watch;
  }

  /** What came after a version is forgotten. */
  #backAt(state: LoopState, target: string): LoopState {
    const at = state.published.findLastIndex(({ version }) => version === target);
    const published = state.published.slice(0, at + 1);
    const { confirmed, start, stretch } = state;
    const isKnown = confirmed === start || published.some(({ version }) => version === confirmed);
    const lost = state.published.length - published.length;
    return {
      ...state,
      live: target,
      published,
      confirmed: isKnown ? confirmed : target,
      stretch: { ...stretch, publications: Math.max(0, stretch.publications - lost) },
      watch: null,
    };
  }

  /** Live, in one with what its confirmation says of it: a version that was never published must not be one to compare with. */
  #lived(
    state: LoopState,
    { version, against, trainerStep, confirmedBy }: NonNullable<LoopState['watch']>,
  ): LoopState {
    const { stretch, counts } = state;
    const fresh = new Set(confirmedBy);
    const confirmed = confirmedBy === null ? state.confirmed : version;
    return {
      ...state,
      live: version,
      published: [...state.published, { version, trainerStep, at: Date.now() }].filter(
        // Those that are on disk.
        (item, at, { length }) =>
          at >= length - this.house.settings.keepVersions ||
          item.version === confirmed ||
          item.version === against,
      ),
      confirmed,
      stretch:
        confirmedBy === null
          ? { ...stretch, publications: stretch.publications + 1 }
          : {
              attempts: 0,
              publications: 0,
              working: [...confirmedBy],
              used: [...stretch.used.filter((key) => !fresh.has(key)), ...stretch.working],
            },
      counts: { ...counts, published: counts.published + 1 },
    };
  }

  /** What was written down stands: what cannot be removed after it costs room, and no more. */
  #tidy(state: LoopState): Promise<void> {
    return this.#tolerant(this.versions.release(state).then(() => this.#prune(state)));
  }

  async #tolerant(removal: Promise<void>): Promise<void> {
    await removal.catch((error) => this.house.onFailure(error as Error, 'the removal of old versions'));
  }

  async #prune(state: LoopState): Promise<void> {
    const kept = state.published.slice(-this.house.settings.keepVersions).map(({ version }) => version);
    const watched = state.watch === null ? [] : [state.watch.version, state.watch.against];
    await pruneVersions(
      versionsOf(this.house.folder),
      new Set([...kept, state.live, state.confirmed, ...watched]),
    );
  }

  /** All steps between the live version and the candidate. */
  async #receipt({ ledger, live, lastGate, start }: LoopState, orderedBy: string | null): Promise<Receipt> {
    const line =
      ledger === null ? [] : (await this.house.store.lineOf(ledger.version, [live, start])).reverse();
    const receipts = line.map(({ receipt }) => receipt as Partial<StepReceipt> | null);
    return {
      version: ledger?.version ?? live,
      parent: live,
      steps: line.map(({ digest }) => digest),
      trajectoryIds: [...new Set(line.flatMap(({ trajectoryIds }) => trajectoryIds))],
      seeds: [...new Set(receipts.flatMap((receipt) => receipt?.seed ?? []))],
      configDigest: this.house.configDigest,
      indexSnapshotId: this.house.training.retriever?.snapshotId ?? null,
      metrics: receipts.at(-1)?.metrics ?? {},
      gate: (lastGate?.tests ?? []) as Receipt['gate'],
      publishedBy: 'the loop',
      orderedBy,
      publishedAt: Date.now(),
    };
  }
}

/** The files are gone or not what was written; anything else may pass. */
const isDamage = (error: unknown): boolean =>
  error instanceof IntegrityError || error instanceof NotFoundError || error instanceof FileFormatError;

const unlessDamaged = (check: Promise<unknown>): Promise<boolean> =>
  check.then(
    () => true,
    (error) => {
      if (isDamage(error)) return false;
      throw error;
    },
  );

/** Versions that were live or on trial before and are not any more. */
function takenBack(before: LoopState, after: LoopState): string[] {
  const kept = new Set(after.published.map(({ version }) => version));
  const tried = before.watch === null ? [] : [before.watch.version];
  return [...new Set([...before.published.map(({ version }) => version), ...tried])].filter(
    (version) => !kept.has(version) && version !== after.live,
  );
}
