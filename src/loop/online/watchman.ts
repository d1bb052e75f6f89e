// Follows what users say, also while a round is under way or the loop is paused, and takes a version back that they find worse.

import { NotFoundError } from '../../errors.js';
import { OneAtATime } from '../../util/one-at-a-time.js';
import type { Book } from './book.js';
import type { Findings } from './findings.js';
import type { LoopHouse } from './house.js';
import type { Judge } from './judge.js';
import type { LabelIndex } from './labels.js';
import { deletedAlong } from './lineage.js';
import { Outcomes } from './outcomes.js';
import type { Publisher, Rollback } from './publisher.js';
import type { LoopState } from './state.js';
import type { TrainerKeeper } from './trainer-keeper.js';
import { watchSettings } from './watch.js';

export interface WatchmanParts {
  readonly house: Pick<LoopHouse, 'settings' | 'onNote' | 'store'>;
  readonly book: Book;
  readonly labels: LabelIndex;
  readonly findings: Findings;
  readonly judge: Judge;
  readonly publisher: Publisher;
  readonly trainers: TrainerKeeper;
}

export class Watchman {
  readonly #outcomes: Outcomes;
  readonly #hearing = new OneAtATime();
  #heardAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly parts: WatchmanParts) {
    this.#outcomes = new Outcomes(parts.labels, watchSettings(parts.house.settings));
  }

  /**
   * Follows what is said and deleted; changes no state.
   * @param maxAgeMs  what was heard so long ago is new enough: who listens beside the rounds has read it
   */
  hear(maxAgeMs = 0): Promise<void> {
    const { house, labels, findings, judge, book } = this.parts;
    return this.#hearing.run(async () => {
      const now = performance.now();
      if (now - this.#heardAt < maxAgeMs) return;
      const news = await labels.refresh();
      for (const { head } of news) findings.forget(head.id);
      this.#outcomes.hear(book.state.watch, news);
      // Which words are gone the labels find out in their own time: until then they must not decide.
      const counted = this.#outcomes.ids();
      if (counted.length > 0) this.#outcomes.forget(await house.store.deletedAmong(counted));
      await judge.forgetDeleted(labels);
      this.#heardAt = now;
    });
  }

  /** The state with all that was heard. */
  get state(): LoopState {
    const { state } = this.parts.book;
    return state.watch === null ? state : { ...state, watch: this.#outcomes.of(state.watch) };
  }

  /** What a version that goes live now is compared with. */
  get heard() {
    return { answers: this.parts.labels.answers(), sequence: this.#outcomes.sequence };
  }

  /** What users found does not wait for the end of a round, or of a pause. */
  get isUrgent(): boolean {
    const { watch, name } = this.parts.book.state;
    if (watch === null) return false;
    const verdict = this.#outcomes.verdict(watch);
    return verdict === 'worse' || (verdict === 'kept' && watch.share < 1 && name !== 'paused');
  }

  /** Something that counts in the state was deleted: it is not to lie on the disk until the round under way has ended. */
  get mustForget(): boolean {
    return this.#outcomes.hasForgotten;
  }

  /** Takes what was heard over into the state, and draws the consequence; in a turn. */
  async act(): Promise<void> {
    const { book, publisher, house } = this.parts;
    const { watch } = book.state;
    if (watch === null) return;
    const next = this.#outcomes.take(watch);
    book.state = { ...book.state, watch: next };
    if (this.mustForget || next.test.pairs !== watch.test.pairs) {
      await publisher.save(book.state);
      this.#outcomes.written(next);
    }
    const verdict = this.#outcomes.verdict(next);
    // What is live stays so while the loop is paused, unless it does harm.
    if (verdict === 'open' || (verdict === 'kept' && book.state.name === 'paused')) return;
    const { pairs, sum } = next.test;
    const seen = `over ${pairs} pairs of labelled answers its mean outcome differs by ${(sum / pairs).toFixed(3)}`;
    const deleted = next.share < 1 ? await deletedAlong(house.store, next.version, book.state.live) : 0;
    if (deleted > 0) {
      const why = `${deleted} records were deleted after it had been trained on them`;
      await this.#rollBack(next.against, { reason: why, by: null, mayBeOlder: true, isVerdict: false });
      return;
    }
    if (verdict === 'worse') {
      const reason = `users say that it is worse: ${seen}`;
      await this.#rollBack(next.against, { reason, by: null, mayBeOlder: true, isVerdict: true });
      return;
    }
    await publisher.keep(book.state, book.commit);
    house.onNote(`version ${watch.version.slice(0, 12)} is kept: ${seen}`);
    if (watch.share < 1) book.tell('published', watch.version, []);
  }

  /** In a turn. @param version  to go back to; else the one before, or an older one where its files are damaged */
  async rollBack(reason: string, version?: string, by: string | null = null): Promise<void> {
    const { book, publisher } = this.parts;
    const target = version ?? publisher.before(book.state);
    if (target === null)
      throw new NotFoundError(
        `version ${book.state.live} is what the loop began with: there is none before it`,
      );
    await this.#rollBack(target, { reason, by, mayBeOlder: version === undefined, isVerdict: false });
  }

  async #rollBack(target: string, why: Omit<Rollback, 'returnTo' | 'commit'>): Promise<void> {
    const { book, publisher, trainers } = this.parts;
    const from = book.state.watch?.version ?? book.state.live;
    await publisher.rollBack(book.state, target, {
      ...why,
      returnTo: (next) => trainers.returnTo(next, publisher.trainerStepOf(next)),
      commit: book.commit,
    });
    book.tell('rolled_back', from, [why.reason], why.by);
  }
}
