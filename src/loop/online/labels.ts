// What is known of labelled answers, kept up by following the store's feedback: who may teach and who may judge.

import {
  type FeedbackEntry,
  type Label,
  type LabelSource,
  labelOf,
  type StoredHead,
  type StoredMessage,
  type TrajectoryStore,
} from '../../trajectory/index.js';
import { type GateQuestion, isHeldOut, questionKey } from './gate/questions.js';

export interface LabelledAnswer {
  readonly head: StoredHead;
  /** The question as the splits know it. */
  readonly key: string;
  readonly messages: readonly StoredMessage[];
  readonly userKey: string | null;
  readonly label: Exclude<Label, { kind: 'none' }>;
  readonly sources: readonly LabelSource[];
  /** What a new rollout of the question is compared with; empty where only this very answer was judged. */
  readonly goldenAnswers: readonly string[];
}

export type LabelStore = Pick<TrajectoryStore, 'feedbackSince' | 'feedbackOf' | 'list' | 'read'>;

const AT_ONCE = 200;
/** A model without search that is never trained, and rollouts of our own. */
const NOT_TAUGHT = { method: 'chat', source: 'train' } as const;

export class LabelIndex {
  readonly #answers = new Map<string, LabelledAnswer>();
  readonly #messages = new Map<string, { messages: readonly StoredMessage[]; question: string }>();
  #sequence = 0;

  /** @param reserved  keys of questions that an admin set aside for the gate: never trained on */
  constructor(
    private readonly store: LabelStore,
    private readonly reserved: ReadonlySet<string> = new Set(),
  ) {}

  /** Last feedback that was read. */
  get sequence(): number {
    return this.#sequence;
  }

  /** Reads what was said since. @returns the answers about which something new was said */
  async refresh(): Promise<LabelledAnswer[]> {
    const changed = new Set<string>();
    for (;;) {
      const entries = await this.store.feedbackSince(this.#sequence, AT_ONCE);
      for (const entry of entries) changed.add(entry.trajectoryId);
      const last = entries.at(-1);
      if (last !== undefined) this.#sequence = last.sequence;
      if (entries.length < AT_ONCE) break;
    }
    const ids = [...changed];
    const news: LabelledAnswer[] = [];
    for (let from = 0; from < ids.length; from += AT_ONCE)
      news.push(...(await this.#read(ids.slice(from, from + AT_ONCE))));
    return news;
  }

  answers(): readonly LabelledAnswer[] {
    return [...this.#answers.values()];
  }

  /** Answers that were deleted are forgotten. @returns those of `wanted` that are still there */
  async present(wanted: readonly LabelledAnswer[]): Promise<LabelledAnswer[]> {
    const ids = wanted.map(({ head }) => head.id);
    const found = new Set<string>();
    for (let from = 0; from < ids.length; from += AT_ONCE) {
      const some = ids.slice(from, from + AT_ONCE);
      for (const { id } of await this.store.list({ ids: some }, { limit: some.length, order: 'oldest' }))
        found.add(id);
    }
    for (const id of ids) if (!found.has(id)) this.#forget(id);
    return wanted.filter(({ head }) => found.has(head.id));
  }

  /** One labelled answer for each question that may be trained on by new rollouts. */
  toReplay(): Map<string, LabelledAnswer> {
    return this.#bestOf((answer) => answer.goldenAnswers.length > 0 && this.mayTeach(answer));
  }

  /** Held out, labelled by an admin or by two keys that agree. */
  toJudge(): GateQuestion[] {
    const best = this.#bestOf(
      (answer) => answer.goldenAnswers.length > 0 && isHeldOut(answer.key) && isTrusted(answer.sources),
    );
    return [...best.values()].map(({ key, messages, goldenAnswers }) => ({
      key,
      messages,
      goldenAnswers,
    }));
  }

  mayTeach({ head, key }: LabelledAnswer): boolean {
    const { method, source, auditState } = head;
    const isTaught = method !== NOT_TAUGHT.method && source !== NOT_TAUGHT.source;
    return isTaught && auditState !== 'quarantined' && !isHeldOut(key) && !this.reserved.has(key);
  }

  #bestOf(accept: (answer: LabelledAnswer) => boolean): Map<string, LabelledAnswer> {
    const best = new Map<string, LabelledAnswer>();
    for (const answer of this.#answers.values()) {
      if (!accept(answer)) continue;
      const before = best.get(answer.key);
      if (before === undefined || weightOf(answer) >= weightOf(before)) best.set(answer.key, answer);
    }
    return best;
  }

  async #read(ids: readonly string[]): Promise<LabelledAnswer[]> {
    const heads = await this.store.list({ ids }, { limit: ids.length, order: 'oldest' });
    const unread = heads.filter(({ id }) => !this.#messages.has(id)).map(({ id }) => id);
    for (const { record, notes } of await this.store.read(unread)) {
      const messages =
        notes.messages.length > 0 ? notes.messages : [{ role: 'user', content: record.question }];
      this.#messages.set(record.id, { messages, question: record.question });
    }
    const entries = new Map<string, FeedbackEntry[]>(ids.map((id) => [id, []]));
    for (const entry of await this.store.feedbackOf(ids)) entries.get(entry.trajectoryId)?.push(entry);
    const news: LabelledAnswer[] = [];
    for (const head of heads) {
      const answer = this.#answerOf(head, labelOf(entries.get(head.id) ?? []));
      if (answer === null) this.#answers.delete(head.id);
      else {
        this.#answers.set(head.id, answer);
        news.push(answer);
      }
    }
    return news;
  }

  #answerOf(head: StoredHead, label: Label): LabelledAnswer | null {
    const text = this.#messages.get(head.id);
    if (label.kind === 'none' || text === undefined) return null;
    return {
      head,
      key: questionKey(text.question),
      messages: text.messages,
      userKey: head.userKey,
      label,
      sources: label.sources,
      goldenAnswers: goldsOf(head, label),
    };
  }

  #forget(id: string): void {
    this.#answers.delete(id);
    this.#messages.delete(id);
  }
}

/** Gold answers, or the answer itself where everybody called it right. */
function goldsOf({ answer }: StoredHead, label: Exclude<Label, { kind: 'none' }>): readonly string[] {
  if (label.kind === 'gold') return label.answers;
  return label.value >= 1 && answer !== null && answer !== '' ? [answer] : [];
}

const isTrusted = (sources: readonly LabelSource[]): boolean =>
  sources.some(({ role }) => role === 'admin') || new Set(sources.map(({ keyId }) => keyId)).size >= 2;

/** An admin's word before all others, many keys before few. */
const weightOf = ({ sources }: LabelledAnswer): number =>
  sources.some(({ role }) => role === 'admin') ? Number.POSITIVE_INFINITY : sources.length;
