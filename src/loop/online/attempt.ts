// A step that fails: whether the same is tried once more, or the next step is about others. Chance follows from the place
// alone, so what failed for a reason of its own would fail for ever, and nothing would be learned from any other label.

import { awayOf, mayPass } from './away.js';
import type { Place } from './choose-questions.js';
import type { Known } from './findings.js';

export class Attempt {
  /** Of the step under way; null: none is. */
  #plan: string | null = null;
  #place: Place | null = null;
  readonly #records = new Set<string>();
  #lastFailed: string | null = null;

  begin({ step, place }: { readonly step: number; readonly place: Place }): void {
    this.#plan = `${step} ${place.pass} ${place.cursor}`;
    this.#place = null;
    this.#records.clear();
  }

  /** Where the choice of questions ended. */
  chose({ pass, cursor }: Place): void {
    this.#place = { pass, cursor };
  }

  /** Stored answers that are to be learned from as they were given. */
  took(ids: readonly string[]): void {
    for (const id of ids) this.#records.add(id);
  }

  end(): void {
    this.#plan = null;
  }

  /**
   * Store, search and engine are away for all questions alike. What else was away may come back, so that is tried a second time; but a
   * judge that fails at one question fails there again. All else goes on to others at once: to the questions behind those that
   * were chosen, and to answers that stood in no failed step of this candidate.
   */
  failed(error: Error, known: Known): Partial<Place> {
    const plan = this.#plan;
    if (plan === null) return {};
    if (awayOf(error)?.isOfAll) {
      this.end();
      return {};
    }
    const isRepeated = this.#lastFailed === plan;
    this.#lastFailed = plan;
    this.end();
    if (mayPass(error)) return isRepeated ? (this.#place ?? {}) : {};
    for (const id of this.#records) known.note(id, 'a step with it failed');
    return this.#place ?? {};
  }
}
