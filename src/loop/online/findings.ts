// What is known against answers beyond what their heads say: that a step was made of them, or what reading them showed. Whoever
// looks for answers to learn from asks here first, so that the same ones are not read, and do not stand in the way, each time.

import type { Unusable } from './logged.js';

/** What holds for one candidate. */
export interface Known {
  /** Null: nothing. */
  against(id: string): Unusable | null;
  note(id: string, reason: Unusable): void;
  /** Those of which nothing was ever noted come first: the others are read again only where they are needed. */
  ordered<Item>(items: readonly Item[], idsOf: (item: Item) => readonly string[]): Item[];
}

interface Finding {
  readonly reason: Unusable;
  /** Candidate for which it was found; null: it holds for all of them. */
  readonly candidate: string | null;
}

const PASSING: ReadonlySet<Unusable> = new Set([
  'too far from the present policy',
  'nobody can tell what it is worth',
  'a step with it failed',
]);
/** Findings that are kept, the newest; what falls out is read once more. */
const MOST = 20_000;

export class Findings {
  #used: Set<string> | null = null;
  readonly #found = new Map<string, Finding>();

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
    return {
      against: (id) => {
        if (this.#used?.has(id)) return 'trained on before';
        const found = this.#found.get(id);
        if (found === undefined) return null;
        return found.candidate === null || found.candidate === candidate ? found.reason : null;
      },
      note: (id, reason) => {
        this.#found.delete(id);
        this.#found.set(id, { reason, candidate: PASSING.has(reason) ? candidate : null });
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
}
