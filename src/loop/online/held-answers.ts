// Answers that are held in memory, by id, within bounds: the store has them all, and labels come for years.

import { isLabelled, type KnownAnswer } from './known-answer.js';

export interface HeldBounds {
  /** Characters of labelled answers that teach, and of those that may judge: the newest ones. */
  readonly teaching: number;
  readonly judging: number;
}

/** At 3 thousand characters an answer some 40,000 that teach and 10,000 that judge: many more than steps and verdicts take. */
const HELD_BOUNDS: HeldBounds = { teaching: 128 << 20, judging: 32 << 20 };

type Kind = keyof HeldBounds;

/** Of an answer with its label beside its texts. */
const LEAST_SIZE = 1500;

export class HeldAnswers {
  readonly #answers = new Map<string, KnownAnswer>();
  readonly #sizes: Record<Kind, number> = { teaching: 0, judging: 0 };

  constructor(private readonly bounds: HeldBounds = HELD_BOUNDS) {}

  get size(): number {
    return this.#answers.size;
  }

  get(id: string): KnownAnswer | undefined {
    return this.#answers.get(id);
  }

  has(id: string): boolean {
    return this.#answers.has(id);
  }

  ids(): IterableIterator<string> {
    return this.#answers.keys();
  }

  all(): IterableIterator<KnownAnswer> {
    return this.#answers.values();
  }

  /** What is said anew of an answer makes it the newest. */
  put(answer: KnownAnswer): void {
    this.delete(answer.head.id);
    this.#answers.set(answer.head.id, answer);
    this.#count(answer, 1);
  }

  delete(id: string): boolean {
    const answer = this.#answers.get(id);
    if (answer === undefined) return false;
    this.#count(answer, -1);
    return this.#answers.delete(id);
  }

  /** The oldest labelled answers go, as many as are beyond the bounds. @returns whether any did */
  trim(): boolean {
    const before = this.#answers.size;
    for (const kind of ['teaching', 'judging'] as const) {
      if (this.#sizes[kind] <= this.bounds[kind]) continue;
      for (const [id, answer] of this.#answers) {
        if (this.#sizes[kind] <= this.bounds[kind]) break;
        if (kindOf(answer) === kind) this.delete(id);
      }
    }
    return this.#answers.size < before;
  }

  #count(answer: KnownAnswer, sign: 1 | -1): void {
    const kind = kindOf(answer);
    if (kind !== null) this.#sizes[kind] += sign * sizeOf(answer);
  }
}

/** Null: it has no label, and is bounded by number. */
function kindOf(answer: KnownAnswer): Kind | null {
  if (!isLabelled(answer)) return null;
  return answer.isHeldOut && answer.trustedAnswers.length > 0 ? 'judging' : 'teaching';
}

const sizeOf = ({ messages, answer }: KnownAnswer): number =>
  messages.reduce((sum, { content }) => sum + content.length, LEAST_SIZE + (answer?.length ?? 0));
