// What users say of a watched version, heard at once whatever the loop is doing or waiting for. The loop's state belongs to the
// turn under way, so what is heard runs ahead of it until a turn takes it over.

import type { LabelledAnswer } from './known-answer.js';
import type { LabelIndex } from './labels.js';
import { type SequentialVerdict, sequentialVerdict } from './statistics/sequential-test.js';
import {
  countedIds,
  lastSaid,
  observeOutcomes,
  type Watch,
  type WatchSettings,
  withoutDeleted,
} from './watch.js';

export class Outcomes {
  /** The state's, when it was last looked at. */
  #base: Watch | null = null;
  /** The same with all that was heard since. */
  #ahead: Watch | null = null;
  #hasForgotten = false;
  #sequence = 0;

  constructor(
    private readonly labels: Pick<LabelIndex, 'answers' | 'sequence'>,
    private readonly settings: WatchSettings,
  ) {}

  /** Number of the last feedback that was heard. */
  get sequence(): number {
    return this.#sequence;
  }

  /**
   * @param watch  of the state as it is
   * @param news   what the labels learned since the last call
   */
  hear(watch: Watch | null, news: readonly LabelledAnswer[]): void {
    this.#sequence = this.labels.sequence;
    if (watch === null || watch !== this.#base) this.#follow(watch);
    else this.#ahead = this.#observed(this.#ahead ?? watch, news);
  }

  /** Of what counts now: see {@link countedIds}. */
  ids(): string[] {
    return this.#ahead === null ? [] : countedIds(this.#ahead);
  }

  /** @param gone  of `ids` those that somebody had deleted */
  forget(gone: readonly string[]): void {
    if (this.#ahead === null) return;
    const next = withoutDeleted(this.#ahead, new Set(gone), this.settings);
    if (next === this.#ahead) return;
    this.#ahead = next;
    this.#hasForgotten = true;
  }

  /** What was deleted may still be in the state as it was written last. */
  get hasForgotten(): boolean {
    return this.#hasForgotten;
  }

  /** @param watch  is on the disk now */
  written(watch: Watch): void {
    if (watch === this.#ahead) this.#hasForgotten = false;
  }

  /** A watch of the state with all that was heard. */
  of(watch: Watch): Watch {
    if (watch !== this.#base) this.#follow(watch);
    return this.#ahead ?? watch;
  }

  /** As {@link of}; the state has it from now on. */
  take(watch: Watch): Watch {
    this.#base = this.of(watch);
    return this.#base;
  }

  verdict(watch: Watch): SequentialVerdict {
    return sequentialVerdict(this.of(watch).test, this.settings);
  }

  /** Another watch has begun, or was read back: what was said since its last look is among the labels. */
  #follow(watch: Watch | null): void {
    this.#base = watch;
    if (watch === null) this.#hasForgotten = false;
    this.#ahead = watch && this.#observed(watch, saidSince(this.labels.answers(), watch.feedback));
  }

  #observed(watch: Watch, news: readonly LabelledAnswer[]): Watch {
    const feedback = Math.max(watch.feedback, this.#sequence);
    return { ...observeOutcomes(watch, news, this.settings), feedback };
  }
}

/** In the order in which it was said. */
const saidSince = (answers: readonly LabelledAnswer[], sequence: number): LabelledAnswer[] =>
  answers
    .filter((answer) => lastSaid(answer) > sequence)
    .sort((one, other) => lastSaid(one) - lastSaid(other));
