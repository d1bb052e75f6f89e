// Answers that are held in memory, by id, within bounds: the store has them all, and labels come for years.

import { isLabelled, isSame, type KnownAnswer } from './known-answer.js';

/** Characters of the answers of each kind: the newest ones. */
export interface HeldBounds {
  /** Labelled ones that teach, and those that may judge. */
  readonly teaching: number;
  readonly judging: number;
  /** Of which only is known that they are better or worse than others. */
  readonly compared: number;
  /** Of which nothing is known. */
  readonly unlabelled: number;
}

/** At 3 thousand characters an answer some 40,000 that teach and 10,000 that judge: many more than steps and verdicts take. */
const HELD_BOUNDS: HeldBounds = {
  teaching: 128 << 20,
  judging: 32 << 20,
  compared: 32 << 20,
  unlabelled: 64 << 20,
};

type Kind = keyof HeldBounds;
const KINDS = Object.keys(HELD_BOUNDS) as Kind[];

/** Of an answer with its label beside its texts. */
const LEAST_SIZE = 1500;

interface Held {
  readonly answer: KnownAnswer;
  readonly kind: Kind;
}

export class HeldAnswers {
  readonly #held = new Map<string, Held>();
  readonly #sizes: Record<Kind, number> = { teaching: 0, judging: 0, compared: 0, unlabelled: 0 };

  readonly #bounds: HeldBounds;

  constructor(bounds: Partial<HeldBounds> = {}) {
    this.#bounds = { ...HELD_BOUNDS, ...bounds };
  }

  get size(): number {
    return this.#held.size;
  }

  get(id: string): KnownAnswer | undefined {
    return this.#held.get(id)?.answer;
  }

  has(id: string): boolean {
    return this.#held.has(id);
  }

  ids(): IterableIterator<string> {
    return this.#held.keys();
  }

  *all(): Generator<KnownAnswer> {
    for (const { answer } of this.#held.values()) yield answer;
  }

  /** What is said anew of an answer makes it the newest. @returns whether anything was */
  put(answer: KnownAnswer, isCompared: boolean): boolean {
    const { id } = answer.head;
    const kind = kindOf(answer, isCompared);
    const before = this.#held.get(id);
    if (before?.kind === kind && isSame(before.answer, answer)) return false;
    this.delete(id);
    this.#held.set(id, { answer, kind });
    this.#sizes[kind] += sizeOf(answer);
    return true;
  }

  delete(id: string): boolean {
    const held = this.#held.get(id);
    if (held === undefined) return false;
    this.#sizes[held.kind] -= sizeOf(held.answer);
    return this.#held.delete(id);
  }

  /** The oldest answers go, as many as are beyond the bounds. @returns their ids */
  trim(): string[] {
    const gone: string[] = [];
    for (const kind of KINDS) {
      if (this.#sizes[kind] <= this.#bounds[kind]) continue;
      for (const [id, held] of this.#held) {
        if (this.#sizes[kind] <= this.#bounds[kind]) break;
        if (held.kind === kind && this.delete(id)) gone.push(id);
      }
    }
    return gone;
  }
}

function kindOf(answer: KnownAnswer, isCompared: boolean): Kind {
  if (!isLabelled(answer)) return isCompared ? 'compared' : 'unlabelled';
  return answer.isHeldOut && answer.trustedAnswers.length > 0 ? 'judging' : 'teaching';
}

const sizeOf = ({ messages, answer }: KnownAnswer): number =>
  messages.reduce((sum, { content }) => sum + content.length, LEAST_SIZE + (answer?.length ?? 0));
