// Which of two answers to one question people called the better one.

import { type FeedbackEntry, type LabelSource, sourceOf } from '../../trajectory/index.js';

export interface Preference {
  readonly better: string;
  readonly worse: string;
  /** Of those who agree. */
  readonly sources: readonly LabelSource[];
}

/** What one key said of a pair. */
interface Voice {
  readonly better: string;
  readonly worse: string;
  readonly source: LabelSource;
}

interface Pair {
  readonly ids: readonly [string, string];
  /** By key. */
  readonly voices: Map<string, Voice>;
}

/** Pairs that are held in memory, the newest: many more than steps take. */
const MOST_PAIRS = 20_000;

/** Follows feedback; each key counts once for a pair, with what it said last, and an admin's word before all others. */
export class Preferences {
  readonly #pairs = new Map<string, Pair>();
  /** Names of the pairs that an answer is in. */
  readonly #pairsOf = new Map<string, Set<string>>();

  constructor(private readonly most = MOST_PAIRS) {}

  /** Whether it is compared with another answer. */
  has(id: string): boolean {
    return this.#pairsOf.has(id);
  }

  /** @returns whether it was news */
  add(entry: FeedbackEntry): boolean {
    const { trajectoryId: better, preferredOver: worse } = entry;
    if (worse === null) return false;
    const { voices } = this.#pairOf(better, worse);
    const source = sourceOf(entry);
    const before = voices.get(source.keyId);
    if (before !== undefined && before.source.sequence >= source.sequence) return false;
    voices.set(source.keyId, { better, worse, source });
    return true;
  }

  /**
   * @param said  all that is said of `ids` now: what else was heard of them was deleted, and what was said of a pair before it
   *   was let go counts again with what is said anew
   * @returns whether anything changed
   */
  follow(ids: readonly string[], said: readonly FeedbackEntry[]): boolean {
    let isChanged = false;
    const known = new Set(said.map(({ id }) => id));
    const names = new Set(ids.flatMap((id) => [...(this.#pairsOf.get(id) ?? [])]));
    const about = new Set(ids);
    for (const name of names) {
      const { voices } = this.#pairs.get(name) as Pair;
      for (const [key, { better, source }] of voices)
        if (about.has(better) && !known.has(source.feedbackId)) isChanged = voices.delete(key);
    }
    for (const entry of said)
      if (entry.preferredOver !== null && this.#pairs.has(nameOf(entry.trajectoryId, entry.preferredOver)))
        isChanged = this.add(entry) || isChanged;
    for (const name of names) if (this.#pairs.get(name)?.voices.size === 0) this.#drop(name);
    return isChanged;
  }

  /** In the order in which the pairs were first named; none where as many say the opposite. */
  all(): Preference[] {
    return [...this.#pairs.values()].flatMap(({ voices }) => verdictOf([...voices.values()]) ?? []);
  }

  /** Its pairs go. @returns answers that are in no pair any more */
  forget(id: string): string[] {
    return [...(this.#pairsOf.get(id) ?? [])].flatMap((name) => this.#drop(name));
  }

  /** The oldest pairs go, as many as are too many. @returns answers that are in no pair any more */
  trim(): string[] {
    const beyond = [...this.#pairs.keys()].slice(0, Math.max(0, this.#pairs.size - this.most));
    return beyond.flatMap((name) => this.#drop(name));
  }

  #pairOf(one: string, other: string): Pair {
    const name = nameOf(one, other);
    const known = this.#pairs.get(name);
    if (known !== undefined) return known;
    const pair: Pair = { ids: [one, other], voices: new Map() };
    this.#pairs.set(name, pair);
    for (const id of pair.ids) this.#pairsOf.set(id, (this.#pairsOf.get(id) ?? new Set()).add(name));
    return pair;
  }

  #drop(name: string): string[] {
    const { ids } = this.#pairs.get(name) as Pair;
    this.#pairs.delete(name);
    return ids.filter((id) => {
      const names = this.#pairsOf.get(id);
      names?.delete(name);
      return names?.size === 0 && this.#pairsOf.delete(id);
    });
  }
}

const nameOf = (one: string, other: string): string => [one, other].sort().join('\n');

function verdictOf(all: readonly Voice[]): Preference | null {
  const admins = all.filter(({ source }) => source.role === 'admin');
  const voices = admins.length > 0 ? admins : all;
  const first = voices[0] as Voice;
  const forFirst = voices.filter(({ better }) => better === first.better);
  const against = voices.filter(({ better }) => better !== first.better);
  if (forFirst.length === against.length) return null;
  const winners = forFirst.length > against.length ? forFirst : against;
  const { better, worse } = winners[0] as Voice;
  return { better, worse, sources: winners.map(({ source }) => source) };
}
