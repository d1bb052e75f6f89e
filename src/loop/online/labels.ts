// What is known of answers, kept up by following the store's feedback and, where a judge or a vote takes the place of
// labels, its records: who may teach and who may judge.

import {
  type FeedbackEntry,
  type Label,
  labelOf,
  saysNothing,
  type TrajectoryStore,
} from '../../trajectory/index.js';
import { OneAtATime } from '../../util/one-at-a-time.js';
import type { GateQuestion } from './gate/questions.js';
import { HeldAnswers, type HeldBounds } from './held-answers.js';
import {
  isChat,
  isLabelled,
  type KnownAnswer,
  knownAnswer,
  type LabelledAnswer,
  splitOf,
  type Texts,
  weightOf,
} from './known-answer.js';
import { type Preference, Preferences } from './preferences.js';
import { Unaskable } from './unaskable.js';

/** Two answers to one question, the better one first. */
export interface AnswerPair {
  readonly better: KnownAnswer;
  readonly worse: KnownAnswer;
  readonly sources: Preference['sources'];
}

export interface LabelSettings {
  /** Keys of questions that an admin set aside for the gate: never trained on. */
  readonly reserved: ReadonlySet<string>;
  /** Answers without a label are known too, since somebody else can tell what they are worth. */
  readonly withUnlabelled: boolean;
  /** Of what is held in memory; for tests. */
  readonly bounds?: Partial<HeldBounds>;
}

export type LabelStore = Pick<TrajectoryStore, 'feedbackSince' | 'lastWordsOf' | 'list' | 'texts'>;

const AT_ONCE = 200;
/** Sweeps in which all that is known is looked up once more, so that what was deleted goes though no step chooses it. */
const SWEEPS = 64;
/** Answers without a label that are kept in mind, the newest. */
const MOST_UNLABELLED = 20_000;
/** Source of rollouts of our own. */
const NOT_TAUGHT = 'train' as const;

export class LabelIndex {
  /** Conversations that are neither rolled out nor judged by. */
  readonly unaskable = new Unaskable();
  readonly #answers: HeldAnswers;
  readonly #preferences = new Preferences();
  /** What was said of these is not taken in yet: kept where a read fails, for the next refresh. */
  readonly #pending = new Set<string>();
  /** The round under way and whoever listens beside it look things up: what one found gone, none that began before brings back. */
  readonly #looks = new OneAtATime();
  /** Ids that the present sweep has still to look up. */
  #unswept: string[] = [];
  #sequence = 0;
  #lastRecord = 0;
  #forgotten = 0;
  /** Rises with whatever changes. */
  #revision = 0;
  readonly #made = new Map<string, { readonly at: string; readonly value: unknown }>();

  constructor(
    private readonly store: LabelStore,
    private readonly settings: LabelSettings = { reserved: new Set(), withUnlabelled: false },
  ) {
    this.#answers = new HeldAnswers(settings.bounds);
  }

  /** Last feedback that was read. */
  get sequence(): number {
    return this.#sequence;
  }

  /** Answers that were known and are not any more. */
  get forgotten(): number {
    return this.#forgotten;
  }

  /** Reads what was said since; may be called again where it failed. @returns the labelled answers about which something new was said */
  refresh(): Promise<LabelledAnswer[]> {
    return this.#looks.run(() => this.#refresh());
  }

  async #refresh(): Promise<LabelledAnswer[]> {
    await this.#followFeedback();
    const ids = [...this.#pending];
    const news: string[] = [];
    for (let from = 0; from < ids.length; from += AT_ONCE)
      news.push(...(await this.#read(ids.slice(from, from + AT_ONCE))));
    if (this.settings.withUnlabelled) await this.#followRecords();
    await this.#sweep();
    // Not before the last read: news that were not handed out would never be heard of.
    this.#pending.clear();
    // At a start all labels are news: more of them than memory holds.
    return news.flatMap((id) => this.#answers.get(id) ?? []);
  }

  answers(): readonly LabelledAnswer[] {
    return this.#once('answers', () => [...this.#answers.all()].filter(isLabelled));
  }

  /** Answers of which nothing is known, where they are followed. */
  unlabelled(): readonly KnownAnswer[] {
    if (!this.settings.withUnlabelled) return [];
    return this.#once('unlabelled', () => [...this.#answers.all()].filter((item) => !isLabelled(item)));
  }

  /** Those of which both answers are known and at least one has no label of its own: a label says more than a comparison. */
  pairs(): AnswerPair[] {
    return this.#compared().filter((pair) => !isDecided(pair));
  }

  /** Comparisons that nothing is learned from, since both answers have labels. */
  decidedPairs(): AnswerPair[] {
    return this.#compared().filter(isDecided);
  }

  /** Answers that were deleted are forgotten. @returns those of `wanted` that are still there */
  async present<Answer extends KnownAnswer>(wanted: readonly Answer[]): Promise<Answer[]> {
    const found = await this.#looks.run(() => this.#lookUp(wanted.map(({ head }) => head.id)));
    return wanted.filter(({ head }) => found.has(head.id));
  }

  /** Looks a part of what is known up again: answers and what was said of them may have been deleted. */
  sweep(): Promise<void> {
    return this.#looks.run(() => this.#sweep());
  }

  async #sweep(): Promise<void> {
    if (this.#unswept.length === 0) this.#unswept = [...this.#answers.ids()];
    const count = Math.max(AT_ONCE, Math.ceil(this.#answers.size / SWEEPS));
    // What memory did not hold in the meantime is not read back for it.
    const some = this.#unswept.slice(0, count).filter((id) => this.#answers.has(id));
    for (let from = 0; from < some.length; from += AT_ONCE)
      await this.#read(some.slice(from, from + AT_ONCE));
    this.#unswept = this.#unswept.slice(count);
  }

  /** After it `toJudge` names none that was deleted before the call. */
  async dropDeletedJudges(): Promise<void> {
    for (;;) {
      const judges = [...this.#judges().values()];
      // Another answer to the question of one that went may take its place.
      if ((await this.present(judges)).length === judges.length) return;
    }
  }

  /** One answer for each question that may be trained on by new rollouts, those with gold answers first. */
  toReplay(): ReadonlyMap<string, KnownAnswer> {
    return this.#once('replay', () =>
      this.#bestOf(
        (answer) =>
          (answer.goldenAnswers.length > 0 || this.settings.withUnlabelled) &&
          this.mayTeach(answer) &&
          !this.unaskable.has(answer.messages),
      ),
    );
  }

  /** Held out, labelled by an admin or by two keys that agree. */
  toJudge(): readonly GateQuestion[] {
    return this.#once('to judge', () =>
      [...this.#judges().values()].map(({ key, messages, trustedAnswers }) => ({
        key,
        messages,
        goldenAnswers: trustedAnswers,
      })),
    );
  }

  mayTeach({ head, key, isHeldOut }: KnownAnswer): boolean {
    const isTaught = !isChat(head) && head.source !== NOT_TAUGHT && head.auditState !== 'quarantined';
    return isTaught && !isHeldOut && !this.settings.reserved.has(key);
  }

  #judges(): ReadonlyMap<string, KnownAnswer> {
    return this.#once('judges', () =>
      this.#bestOf(
        ({ isHeldOut, messages, trustedAnswers }) =>
          trustedAnswers.length > 0 && isHeldOut && !this.unaskable.has(messages),
      ),
    );
  }

  #compared(): readonly AnswerPair[] {
    return this.#once('compared', () =>
      this.#preferences.all().flatMap(({ better, worse, sources }) => {
        const [first, second] = [this.#answers.get(better), this.#answers.get(worse)];
        return first === undefined || second === undefined ? [] : [{ better: first, worse: second, sources }];
      }),
    );
  }

  /** Status and rounds ask for the same lists again and again, on the thread that answers requests. */
  #once<Value>(name: string, make: () => Value): Value {
    const at = `${this.#revision} ${this.unaskable.size}`;
    const made = this.#made.get(name);
    if (made?.at === at) return made.value as Value;
    const value = make();
    this.#made.set(name, { at, value });
    return value;
  }

  #bestOf(accept: (answer: KnownAnswer) => boolean): Map<string, KnownAnswer> {
    const best = new Map<string, KnownAnswer>();
    for (const answer of this.#answers.all()) {
      if (!accept(answer)) continue;
      const before = best.get(answer.key);
      if (before === undefined || weightOf(answer) >= weightOf(before)) best.set(answer.key, answer);
    }
    return best;
  }

  async #followFeedback(): Promise<void> {
    for (;;) {
      const entries = await this.store.feedbackSince(this.#sequence, AT_ONCE);
      if (entries.length > 0) this.#revision++;
      for (const entry of entries) {
        this.#pending.add(entry.trajectoryId);
        this.#preferences.add(entry);
        if (entry.preferredOver === null) continue;
        this.#pending.add(entry.preferredOver);
      }
      this.#letGo(this.#preferences.trim());
      const last = entries.at(-1);
      if (last !== undefined) this.#sequence = last.sequence;
      if (entries.length < AT_ONCE) return;
    }
  }

  /** @returns ids of those that have a label */
  async #read(ids: readonly string[]): Promise<string[]> {
    const heads = await this.store.list({ ids }, { limit: ids.length, order: 'oldest' });
    const entries = new Map<string, FeedbackEntry[]>(ids.map((id) => [id, []]));
    const said = await this.store.lastWordsOf(ids);
    for (const entry of said) entries.get(entry.trajectoryId)?.push(entry);
    if (this.#preferences.follow(ids, said)) this.#revision++;
    const wanted = heads
      .map((head) => ({ head, label: labelOf(entries.get(head.id) ?? []) }))
      .filter(({ head, label }) => this.#isWanted(head.id, label));
    const texts = await this.#textsOf(wanted.map(({ head }) => head.id));
    const gone = new Set(ids);
    const news: string[] = [];
    for (const { head, label } of wanted) {
      const text = texts.get(head.id);
      if (text === undefined) continue;
      const answer = knownAnswer(head, text, label);
      gone.delete(head.id);
      if (this.#answers.put(answer, this.#preferences.has(head.id))) this.#revision++;
      if (isLabelled(answer)) news.push(head.id);
    }
    // Deleted, or nothing can be learned from it as things are.
    for (const id of gone) this.#forget(id);
    const beyond = this.#answers.trim();
    if (beyond.length > 0) this.#changed();
    this.#letGo(beyond.flatMap((id) => this.#preferences.forget(id)));
    return news;
  }

  #isWanted(id: string, label: Label): boolean {
    return !saysNothing(label) || this.settings.withUnlabelled || this.#preferences.has(id);
  }

  /** A record does not change: those that are known are not read again. */
  async #textsOf(ids: readonly string[]): Promise<Map<string, Texts>> {
    const texts = new Map<string, Texts>();
    const unread: string[] = [];
    for (const id of ids) {
      const known = this.#answers.get(id);
      if (known === undefined) unread.push(id);
      else texts.set(id, known);
    }
    for (const { id, question, answer, messages } of unread.length > 0 ? await this.store.texts(unread) : [])
      texts.set(id, {
        ...splitOf(question),
        answer,
        messages: messages.length > 0 ? messages : [{ role: 'user', content: question }],
      });
    return texts;
  }

  /** New answers of users, whether anybody said something of them or not. */
  async #followRecords(): Promise<void> {
    const filter = { notSource: NOT_TAUGHT };
    if (this.#lastRecord === 0) {
      // What is older would be read to be forgotten again.
      const [last] = await this.store.list(filter, { order: 'newest', limit: 1, skip: MOST_UNLABELLED });
      this.#lastRecord = last?.sequence ?? 0;
    }
    // Behind the last answer there may be a night of rollouts, which the next look need not pass again.
    const [newest] = await this.store.list({}, { order: 'newest', limit: 1 });
    for (;;) {
      const page = { cursor: this.#lastRecord, limit: AT_ONCE, order: 'oldest' } as const;
      const heads = await this.store.list(filter, page);
      const last = heads.at(-1);
      if (last === undefined) {
        this.#lastRecord = Math.max(this.#lastRecord, newest?.sequence ?? 0);
        return;
      }
      const unread = heads.filter(({ id }) => !this.#answers.has(id));
      if (unread.length > 0) await this.#read(unread.map(({ id }) => id));
      this.#lastRecord = last.sequence;
      const open = this.unlabelled().filter(({ head }) => !this.#preferences.has(head.id));
      const beyond = open.slice(0, Math.max(0, open.length - MOST_UNLABELLED));
      // The store has them still: nobody need look for what was deleted.
      for (const { head } of beyond) this.#answers.delete(head.id);
      if (beyond.length > 0) this.#changed();
    }
  }

  /** Forgets those that the store has not. @returns those that it has */
  async #lookUp(ids: readonly string[]): Promise<Set<string>> {
    const found = new Set<string>();
    for (let from = 0; from < ids.length; from += AT_ONCE) {
      const some = ids.slice(from, from + AT_ONCE);
      for (const { id } of await this.store.list({ ids: some }, { limit: some.length, order: 'oldest' }))
        found.add(id);
    }
    for (const id of ids) if (!found.has(id)) this.#forget(id);
    return found;
  }

  #forget(id: string): void {
    if (this.#answers.delete(id)) {
      this.#forgotten++;
      this.#changed();
    }
    this.#letGo(this.#preferences.forget(id));
  }

  /** @param ids  in no pair any more: those that were known for that alone go */
  #letGo(ids: readonly string[]): void {
    if (ids.length === 0) return;
    for (const id of ids) {
      const answer = this.#answers.get(id);
      if (answer !== undefined && !this.#isWanted(id, answer.label)) this.#answers.delete(id);
    }
    this.#changed();
  }

  #changed(): void {
    this.#revision++;
    // Lists hold texts: with an answer that was deleted they go too, whether or not anybody asks for them again.
    this.#made.clear();
  }
}

const isDecided = ({ better, worse }: AnswerPair): boolean => isLabelled(better) && isLabelled(worse);
