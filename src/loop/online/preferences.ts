// Which of two answers to one question people called the better one.

import { type FeedbackEntry, type LabelSource, sourceOf } from '../../trajectory/index.js';

export interface Preference {
  readonly better: string;
  readonly worse: string;
  /** Of those who agree. */
  readonly sources: readonly LabelSource[];
}

/** Follows feedback; each key counts once for a pair, with what it said last, and an admin's word before all others. */
export class Preferences {
  /** By pair, then by key. */
  readonly #said = new Map<string, Map<string, FeedbackEntry>>();

  add(entry: FeedbackEntry): void {
    const { trajectoryId, preferredOver, keyId, sequence } = entry;
    if (preferredOver === null) return;
    const pair = [trajectoryId, preferredOver].sort().join('\n');
    const voices = this.#said.get(pair) ?? new Map<string, FeedbackEntry>();
    const before = voices.get(keyId);
    if (before === undefined || before.sequence < sequence) voices.set(keyId, entry);
    this.#said.set(pair, voices);
  }

  /**
   * @param said  all that is said of `ids` now: what else was heard of them was deleted
   * @returns whether anything was
   */
  keep(ids: readonly string[], said: readonly FeedbackEntry[]): boolean {
    if (this.#said.size === 0) return false;
    let isChanged = false;
    const [about, kept] = [new Set(ids), new Set(said.map(({ id }) => id))];
    for (const [pair, voices] of this.#said) {
      for (const [key, { trajectoryId, id }] of voices)
        if (about.has(trajectoryId) && !kept.has(id)) isChanged = voices.delete(key);
      if (voices.size === 0) this.#said.delete(pair);
    }
    return isChanged;
  }

  /** In the order in which the pairs were first named; none where as many say the opposite. */
  all(): Preference[] {
    return [...this.#said.values()].flatMap((voices) => verdictOf([...voices.values()]) ?? []);
  }

  forget(id: string): void {
    for (const pair of [...this.#said.keys()]) if (pair.split('\n').includes(id)) this.#said.delete(pair);
  }
}

function verdictOf(all: readonly FeedbackEntry[]): Preference | null {
  const admins = all.filter(({ role }) => role === 'admin');
  const voices = admins.length > 0 ? admins : all;
  const first = voices[0] as FeedbackEntry;
  const forFirst = voices.filter(({ trajectoryId }) => trajectoryId === first.trajectoryId);
  const against = voices.filter(({ trajectoryId }) => trajectoryId !== first.trajectoryId);
  if (forFirst.length === against.length) return null;
  const winners = forFirst.length > against.length ? forFirst : against;
  const { trajectoryId, preferredOver } = winners[0] as FeedbackEntry;
  return {
    better: trajectoryId,
    worse: preferredOver as string,
    sources: winners.map(sourceOf),
  };
}
