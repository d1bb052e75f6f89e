// What is known against answers beyond what their heads say: that a step was made of them, or what reading them showed. Whoever
// looks for answers to learn from asks here first, so that the same ones are not read, and do not stand in the way, each time.

import type { Unusable } from './logged.js';

/** What holds for a candidate. */
export interface Known {
  /** Null: nothing. */
  against(id: string): Unusable | null;
  note(id: string, reason: Unusable): void;
  /** Those of which nothing was ever noted come first: the others are read again only where they are needed. */
  ordered<Item>(items: readonly Item[], idsOf: (item: Item) => readonly string[]): Item[];
}

interface Finding {
  readonly reason: Unusable;
  /** Number of the last candidate that it holds for. */
  readonly until: number;
}

/** Candidates for which a distance holds: policies move slowly, and mostly on. */
const FAR_LASTS = 8;
/** How many candidates a finding holds for; all others hold for ever, as records do not change. */
const LASTS: Readonly<Partial<Record<Unusable, number>>> = {
  'too far from the present policy': FAR_LASTS,
  'nobody can tell what it is worth': 1,
  'a step with it failed': 1,
};
/** Candidates that are remembered, the newest, to tell when training goes back. */
const MOST_CANDIDATES = 64;
/** Findings that are kept, the newest; what falls out is read once more. */
const MOST = 20_000;

export class Findings {
  #used: Set<string> | null = null;
  readonly #found = new Map<string, Finding>();
  /** Of the present candidate. */
  #number = 0;
  /** The present one is the last. */
  readonly #candidates = new Set<string>();

  constructor(
    private readonly readUsed: () => Promise<Set<string>>,
    private readonly most = MOST,
  ) {}

  /** Reads what steps were made of before, once. */
  async open(): Promise<void> {
    this.#used ??= await this.readUsed();
  }

  use(ids: readonly string[]): void {
    for (const id of ids) this.#used?.add(id);
  }

  /** Something new was said of it. */
  forget(id: string): void {
    this.#found.delete(id);
  }

  under(candidate: string): Known {
    this.#turnTo(candidate);
    return {
      against: (id) => {
        if (this.#used?.has(id)) return 'trained on before';
        const found = this.#found.get(id);
        return found !== undefined && found.until >= this.#number ? found.reason : null;
      },
      note: (id, reason) => {
        this.#found.delete(id);
        const until = this.#number + (LASTS[reason] ?? Number.POSITIVE_INFINITY) - 1;
        this.#found.set(id, { reason, until });
        for (const oldest of this.#found.keys()) {
          if (this.#found.size <= this.most) break;
          this.#found.delete(oldest);
        }
      },
      ordered: (items, idsOf) => {
        const isNew = (item: (typeof items)[number]): boolean =>
          !idsOf(item).some((id) => this.#found.has(id));
        return [...items.filter(isNew), ...items.filter((item) => !isNew(item))];
      },
    };
  }

  #turnTo(candidate: string): void {
    if ([...this.#candidates].at(-1) === candidate) return;
    // Training went back: what was far from where it had got to may be near again.
    this.#number += this.#candidates.delete(candidate) ? FAR_LASTS : 1;
    this.#candidates.add(candidate);
    for (const oldest of this.#candidates) {
      if (this.#candidates.size <= MOST_CANDIDATES) break;
      this.#candidates.delete(oldest);
    }
  }
}

/**
 * Remembers by itself what is noted through it, for as long as it is held: who reads answer after answer for one step must not
 * meet the same ones again, however many there are.
 */
export function remembering(known: Known): Known {
  const own = new Map<string, Unusable>();
  return {
    against: (id) => own.get(id) ?? known.against(id),
    note(id, reason) {
      own.set(id, reason);
      known.note(id, reason);
    },
    ordered: (items, idsOf) => known.ordered(items, idsOf),
  };
}
