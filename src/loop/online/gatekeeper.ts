// From a candidate to what users get: when the gate is asked, and what comes of its verdict.

import { CancelledError } from '../../errors.js';
import type { Book } from './book.js';
import { breaksLimit } from './gate/decide.js';
import { gateInterval } from './gate-interval.js';
import type { LoopHouse } from './house.js';
import type { Judge } from './judge.js';
import type { LabelIndex } from './labels.js';
import { deletedAlong } from './lineage.js';
import type { Publisher } from './publisher.js';
import type { LoopState } from './state.js';
import type { TrainerKeeper } from './trainer-keeper.js';
import type { Watchman } from './watchman.js';

export interface GatekeeperParts {
  readonly house: LoopHouse;
  readonly book: Book;
  readonly labels: LabelIndex;
  readonly judge: Judge;
  readonly publisher: Publisher;
  readonly trainers: TrainerKeeper;
  readonly watchman: Watchman;
}

/** Of the round under way. */
export interface Order {
  readonly signal: AbortSignal;
  /** API key that ordered it; null: the loop works by itself. */
  readonly by: string | null;
}

export class Gatekeeper {
  constructor(private readonly parts: GatekeeperParts) {}

  /** In a turn. @returns whether there was a verdict, or one from before was carried out */
  async judgeWhereDue(order: Order): Promise<boolean> {
    if (await this.#publishPassed(order)) return true;
    const { book, judge, labels } = this.parts;
    const { ledger, live, stepsSinceGate, watch } = book.state;
    if (ledger === null || ledger.version === live || stepsSinceGate < this.#gateInterval) return false;
    // One trial at a time: the next candidate waits until users have had their say on the last.
    if (watch !== null && watch.share < 1) return false;
    const pool = await judge.pool(labels);
    if (judge.knows(book.state, pool)) return false;
    await book.move('due');
    const { verdict, state, confirmedBy } = await judge.judge(book.state, labels, order.signal);
    book.state = state;
    if (verdict.verdict === 'waits') {
      await book.move('short', { waitsFor: verdict.reasons[0] ?? null });
      return false;
    }
    if (verdict.verdict === 'refused') await this.#refuse(ledger.version, verdict.reasons, order);
    else await this.#publish(ledger.version, confirmedBy, order);
    return true;
  }

  get #state(): LoopState {
    return this.parts.book.state;
  }

  get #gateInterval(): number {
    return gateInterval(this.parts.house.settings.gateEvery, this.#state);
  }

  /** A publication that was broken off goes on: the verdict stands. */
  async #publishPassed(order: Order): Promise<boolean> {
    const { book } = this.parts;
    const { passed, ledger, live } = this.#state;
    if (passed === null) return false;
    if (passed.version !== ledger?.version || passed.version === live) {
      await book.commit({ ...this.#state, passed: null });
      return false;
    }
    await book.move('due');
    return this.#publish(passed.version, passed.confirmedBy, order);
  }

  async #refuse(version: string, reasons: readonly string[], { by }: Order): Promise<void> {
    const { book, house, trainers, publisher } = this.parts;
    const { counts, lastGate, refusalsInARow, returns } = this.#state;
    const inARow = refusalsInARow + 1;
    const isUnsound = breaksLimit(lastGate?.tests ?? []);
    const isStuck = !isUnsound && inARow >= house.settings.maxRefusals;
    // What only lacks proof may get better by further steps; what broke a limit must not be built upon.
    const back =
      isUnsound || isStuck
        ? {
            ...(await trainers.returnTo(this.#state, publisher.trainerStepOf(this.#state))),
            refusalsInARow: 0,
            returns: returns + Number(isStuck),
          }
        : { refusalsInARow: inARow };
    await book.move('refused', { ...back, counts: { ...counts, refused: counts.refused + 1 } });
    book.tell('refused', version, reasons, by);
  }

  /** @returns false where what was trained on was deleted since the gate looked, which may have taken an hour: it is asked again */
  async #publish(version: string, confirmedBy: readonly string[] | null, { by }: Order): Promise<boolean> {
    const { book, house, publisher, watchman } = this.parts;
    if ((await deletedAlong(house.store, version, this.#state.live)) > 0) {
      await book.move('failed', { passed: null, stepsSinceGate: this.#gateInterval });
      return false;
    }
    await book.move('passed', { passed: { version, confirmedBy: confirmedBy && [...confirmedBy] } });
    // Users find what is live worse: first it goes back, and the candidate with it.
    if (watchman.isUrgent) throw new CancelledError('a version goes back first');
    // What was heard meanwhile counts for the version that it was said of.
    await publisher.publish(watchman.state, by, watchman.heard, confirmedBy, book.commit);
    const { watch } = this.#state;
    if (watch?.version !== version || watch.share >= 1) book.tell('published', version, [], by);
    else house.onNote(`version ${version.slice(0, 12)} is tried with ${watch.share} of the requests`);
    return true;
  }
}
