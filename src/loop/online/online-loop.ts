// The loop, top to bottom: look for labels, roll out, reward, train, judge, publish, watch, roll back.
//
// One thing at a time. What is done is written down before the next thing begins; whatever breaks off in between is begun
// anew, so a kill at any point loses a step at most. Users' requests never wait for any of it.

import { CancelledError, InvalidInputError } from '../../errors.js';
import type { Trainer } from '../../training/index.js';
import { learnedSoFar } from '../offline/learned.js';
import { Attempt } from './attempt.js';
import { awayOf, UselessStepError } from './away.js';
import { type Batch, givenIds, makeBatch, type Plan } from './batch.js';
import { Book } from './book.js';
import { guardSettings, guardStep } from './collapse-guard.js';
import type { LoopControl, LoopTraffic } from './control.js';
import { Failures } from './failures.js';
import { Findings, type Known } from './findings.js';
import { questionKey } from './gate/questions.js';
import { Gatekeeper } from './gatekeeper.js';
import { healthOfBatch } from './health.js';
import type { LoopHouse } from './house.js';
import { gateAnswers, Judge } from './judge.js';
import { LabelIndex } from './labels.js';
import { hasAnything, missingForStep, trainOn, unjudged } from './learn.js';
import { lookAgain } from './look-again.js';
import { patientStore, unlessStuck } from './patient-store.js';
import { Publisher } from './publisher.js';
import { listVersions, readReceipt } from './read-receipts.js';
import type { LoopState } from './state.js';
import { factsOf, type LoopStatus, statusOf } from './status.js';
import { trafficOf } from './traffic.js';
import { TrainerKeeper } from './trainer-keeper.js';
import { Turns } from './turns.js';
import { Watchman } from './watchman.js';

export class OnlineLoop implements LoopControl {
  readonly #labels: LabelIndex;
  readonly #judge: Judge;
  readonly #publisher: Publisher;
  readonly #trainers: TrainerKeeper;
  readonly #findings: Findings;
  readonly #book: Book;
  readonly #watchman: Watchman;
  readonly #gatekeeper: Gatekeeper;
  readonly #attempt = new Attempt();
  readonly #turns = new Turns();
  readonly #failures: Failures;
  private readonly house: LoopHouse;
  #running: Promise<unknown> | null = null;
  /** API key that ordered the present round. */
  #orderedBy: string | null = null;
  #progress: { readonly done: number; readonly total: number } | null = null;
  /** When the state began to say that it waits. */
  #waitsSince: number | null = null;

  constructor(given: LoopHouse, state: LoopState, startName: string | null) {
    const house = { ...given, store: patientStore(given.store, this.#turns.closed) };
    this.house = house;
    this.#failures = new Failures(house.onFailure, house.outages);
    const reserved = new Set(house.gateQuestions.map(({ question }) => questionKey(question)));
    // Where a judge or a vote tells what an answer is worth, nobody need have said so.
    this.#labels = new LabelIndex(house.store, { reserved, withUnlabelled: house.learnsUnlabelled });
    this.#publisher = new Publisher(house, { version: state.start, name: startName });
    this.#judge = new Judge(house, this.#publisher.versions, this.#labels.unaskable, gateAnswers(house));
    this.#trainers = new TrainerKeeper(house);
    this.#findings = new Findings(() => this.#trainers.usedRecords());
    this.#book = new Book(house, this.#publisher, state);
    const parts = {
      house,
      book: this.#book,
      labels: this.#labels,
      judge: this.#judge,
      publisher: this.#publisher,
      trainers: this.#trainers,
    };
    this.#watchman = new Watchman({ ...parts, findings: this.#findings });
    this.#gatekeeper = new Gatekeeper({ ...parts, watchman: this.#watchman });
  }

  private get state(): LoopState {
    return this.#book.state;
  }

  private set state(state: LoopState) {
    this.#book.state = state;
  }

  /** The version that was live last is live again; what broke off is begun anew. */
  async start(): Promise<void> {
    this.state = await this.#publisher.restore(this.state);
    if (this.state.name !== 'paused') this.state = { ...this.state, name: 'waiting' };
    await this.#publisher.save(this.state);
  }

  /** Where the next questions shall go; whoever watches no trial holds none. */
  traffic(): LoopTraffic {
    if (this.#turns.isClosed) return { exploreShare: 0, canary: null };
    return trafficOf(this.house.settings, this.state, (version) => this.#publisher.versions.nameOf(version));
  }

  /** Works until it is closed, and listens meanwhile: a round may wait for users to rest as long as they like. */
  runInBackground(): void {
    this.#running ??= Promise.all([
      this.#run(),
      lookAgain(() => this.#look(), {
        everyMs: this.house.settings.pollMs,
        closed: this.#turns.closed,
        onFailure: (error) => this.#notHeard(error),
      }),
    ]);
  }

  /** One round: a step where it is possible, the gate where it is due. @returns whether anything was done */
  once(): Promise<boolean> {
    return this.#turns.take(() => this.#round(true));
  }

  status(): LoopStatus {
    const facts = factsOf(this.house, this.#labels, this.#known());
    this.#noteWait();
    const away = this.state.name === 'paused' ? null : this.#failures.waitsFor;
    return statusOf(this.#watchman.state, {
      ...facts,
      progress: this.#progress,
      lastError: this.#failures.last,
      away,
      waitsSince: away === null ? this.#waitsSince : this.#failures.since,
    });
  }

  /** With other numbers it waits for the same. */
  #noteWait(): void {
    this.#waitsSince = this.state.waitsFor === null ? null : (this.#waitsSince ?? Date.now());
  }

  trouble(): string | null {
    if (this.state.name !== 'paused') return this.#failures.alarm;
    return this.state.pausedItself ? `it has paused itself: ${this.state.pausedFor}` : null;
  }

  readonly versions = () => listVersions(this.house.store);
  readonly receipt = (version: string) => readReceipt(this.house.store, version);

  pause(reason: string, by?: string): Promise<LoopStatus> {
    return this.#interrupt(() => this.#pause(reason, by));
  }

  async resume(): Promise<LoopStatus> {
    await this.#order(
      (work) => this.#turns.take(work),
      async () => {
        if (this.state.name !== 'paused') return;
        await this.#book.move('resume', { pausedFor: null, pausedItself: false });
        this.#failures.forgive();
      },
    );
    this.#turns.wake();
    return this.status();
  }

  async step(by?: string): Promise<LoopStatus> {
    const stepped = this.#turns.take(async () => {
      if (this.state.name === 'paused')
        throw new InvalidInputError(`the loop is paused: ${this.state.pausedFor}; resume it first`);
      this.#orderedBy = by ?? null;
      await this.#round(true).finally(() => {
        this.#orderedBy = null;
      });
    });
    await unlessStuck(stepped, this.house.store);
    return this.status();
  }

  rollback(reason: string, version?: string, by?: string): Promise<LoopStatus> {
    return this.#interrupt(() => this.#watchman.rollBack(reason, version, by));
  }

  /** Lets no round begin any more, and ends the one under way. */
  stop(): void {
    this.#turns.close();
  }

  /** Ends the work at the next decode step or micro-batch. Idempotent. */
  async close(): Promise<void> {
    this.stop();
    await this.#running;
    await this.#turns.settled();
    await this.#trainers.close();
  }

  async #run(): Promise<void> {
    while (!this.#turns.isClosed) {
      let worked = false;
      try {
        worked = await this.#turns.take(() => this.#round(false));
      } catch (error) {
        if (!(error instanceof CancelledError)) this.house.onFailure(error as Error, 'a round of the loop');
      }
      if (!worked) await this.#turns.rest(this.#failures.rest * this.house.settings.pollMs);
    }
  }

  async #round(isAsked: boolean): Promise<boolean> {
    if (this.state.name === 'paused' || !this.#turns.begin()) return false;
    try {
      await this.#watchman.hear(isAsked ? 0 : this.house.settings.pollMs);
      await this.#publisher.show(this.state);
      await this.#watchman.act();
      if (this.state.name !== 'waiting') return false;
      const worked = (await this.#judgeWhereDue()) || (await this.#stepAndJudge(isAsked));
      this.#failures.clear();
      return worked;
    } catch (error) {
      await this.#breakOff(error as Error);
      return false;
    } finally {
      this.#progress = null;
      this.#attempt.end();
      this.#noteWait();
    }
  }

  #judgeWhereDue(): Promise<boolean> {
    return this.#gatekeeper.judgeWhereDue({ signal: this.#turns.signal, by: this.#orderedBy });
  }

  // ---- learn

  async #stepAndJudge(isAsked: boolean): Promise<boolean> {
    const stepped = await this.#stepWherePossible(isAsked);
    if (stepped && this.state.name === 'waiting') await this.#judgeWhereDue();
    return stepped;
  }

  async #stepWherePossible(isAsked: boolean): Promise<boolean> {
    await this.#findings.open();
    const known = this.#known();
    const missing = unjudged(this.house, this.state) ?? missingForStep(this.house, this.#labels, known);
    if (missing !== null && !(isAsked && hasAnything(this.house, this.#labels, known))) {
      this.state = { ...this.state, waitsFor: missing };
      return false;
    }
    await this.#book.move('begin', { waitsFor: null });
    const trainer = await this.#trainers.at(this.state);
    const plan = await this.#trainers.plan(this.state, trainer);
    this.#attempt.begin(plan);
    const batch = await makeBatch({
      house: this.house,
      labels: this.#labels,
      plan,
      known,
      attempt: this.#attempt,
      signal: this.#turns.signal,
      onRollout: (done, total) => {
        this.#progress = { done, total };
      },
    });
    if (batch.rollouts.length === 0) {
      await this.#book.move('failed', batch.place);
      throw new UselessStepError('no rollout of the step could be used');
    }
    await this.#book.move('rolled');
    await this.#train(trainer, batch, plan);
    return true;
  }

  #known(): Known {
    return this.#findings.under(this.state.ledger?.version ?? this.state.start);
  }

  async #train(trainer: Trainer, batch: Batch, plan: Plan): Promise<void> {
    const learned = learnedSoFar(this.house.run, trainer.carried);
    const report = await trainOn(this.house, trainer, batch, plan, learned, this.#turns.signal);
    for (const { question, scores, isCompared } of batch.rollouts)
      if (!isCompared) learned.baselines.update(question.dataset, scores.reward);
    learned.follow(report.metrics.kl, batch.rollouts.length);
    const health = await healthOfBatch(batch, report.metrics, this.house.training.tokenizer);
    const guard = guardStep(this.state.guard, health, guardSettings(this.house.settings));
    if (guard.alarms.length > 0) {
      await this.#collapse(guard.alarms);
      return;
    }
    const metrics = { ...report.metrics, ...health };
    // The figures are of the policy that the step began with; what came out of it, the next step tells.
    const began = this.state.ledger?.trainerStep ?? 0;
    const next = await this.#trainers.commit(this.state, trainer, { batch, plan, learned, metrics });
    this.state = {
      ...next,
      guard: guard.state,
      stableStep: guard.stable ? began : this.state.stableStep,
    };
    await this.#publisher.save(this.state);
    this.#attempt.end();
    this.#findings.use(givenIds(batch));
    this.house.onNote(`step ${this.state.step} is committed`, metrics);
    await this.#trainers
      .prune(this.state)
      .catch((error) => this.house.onFailure(error as Error, 'the removal of old checkpoints'));
  }

  /** The step is thrown away, and training goes on from the last policy that was seen to be sound, once somebody has looked at it. */
  async #collapse(alarms: readonly string[]): Promise<void> {
    const back = await this.#trainers.returnTo(this.state, this.state.stableStep);
    const reason = `the policy begins to collapse: ${alarms.join('; ')}; training is back at its step ${back.stableStep}`;
    await this.#book.move('collapsed', { ...back, pausedFor: reason, pausedItself: true });
    this.#book.tell('paused', null, [reason]);
  }

  // ---- watch

  /** Beside the round under way, and while the loop is paused: a round may wait for users to rest as long as they like. */
  async #look(): Promise<void> {
    await this.#watchman.hear();
    if (this.house.store.health().trouble === null) this.#failures.storeIsBack();
    const { isUrgent, mustForget } = this.#watchman;
    if (!isUrgent && !mustForget && this.#publisher.isShown(this.state)) return;
    await this.#turns.interrupt(async () => {
      if (this.#turns.isClosed) return;
      await this.#publisher.show(this.state);
      await this.#watchman.act();
    });
  }

  #notHeard(error: Error): void {
    const doing = 'the look at what users say';
    if (awayOf(error) !== null) this.#failures.add(error, doing);
    else if (!(error instanceof CancelledError)) this.house.onFailure(error, doing);
  }

  // ---- all else

  async #pause(reason: string, by: string | null = null, pausedItself = false): Promise<void> {
    if (this.state.name === 'paused') return;
    await this.#book.move('pause', { pausedFor: reason, pausedItself });
    this.#book.tell('paused', null, [reason], by);
  }

  /** The work ended before its time: what it had is forgotten, the state is the last one written. */
  async #breakOff(error: Error): Promise<void> {
    // Nobody knows which writes the store still makes: none must follow that would undo them. A start begins anew anyway.
    if (this.#turns.isClosed) return;
    const isEnded = error instanceof CancelledError;
    const mustPause = isEnded ? null : this.#failures.add(error, `the loop while ${this.state.name}`);
    const elsewhere = isEnded ? {} : this.#attempt.failed(error, this.#known());
    if (this.state.name !== 'waiting' && this.state.name !== 'paused')
      await this.#book.move('failed', elsewhere);
    if (mustPause === null) return;
    await this.#pause(mustPause, null, true);
  }

  async #interrupt(order: () => Promise<void>): Promise<LoopStatus> {
    await this.#order((work) => this.#turns.interrupt(work), order);
    return this.status();
  }

  /** Says what it waits for where its turn does not come. */
  async #order(
    turn: (work: () => Promise<void>) => Promise<void>,
    order: () => Promise<void>,
  ): Promise<void> {
    let hasBegun = false;
    const work = turn(() => {
      hasBegun = true;
      return order();
    });
    await unlessStuck(work, this.house.store, { waitsFor: () => (hasBegun ? null : this.state.name) });
  }
}
