// What the server has said to be stored. Nothing of it may ever be missing.

import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { writeFileAtomic } from '#searchloop/util/atomic-file.js';

export interface AcknowledgedAnswer {
  readonly id: string;
  /** What the client read. */
  readonly text: string | null;
  readonly version: string;
}

export interface SentFeedback {
  readonly key: string;
  readonly answerId: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Id of the entry, once it was acknowledged. */
  readonly entry: string | null;
}

interface State {
  readonly answers: AcknowledgedAnswer[];
  readonly feedback: SentFeedback[];
}

export class Acknowledged {
  readonly #answers: Map<string, AcknowledgedAnswer>;
  readonly #feedback: Map<string, SentFeedback>;

  private constructor(
    readonly file: string | null,
    state: State,
  ) {
    this.#answers = new Map(state.answers.map((answer) => [answer.id, answer]));
    this.#feedback = new Map(state.feedback.map((item) => [item.key, item]));
  }

  /** @param file  where it is kept between two runs of the bench */
  static read(file: string | null): Acknowledged {
    const state = file !== null && existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null;
    return new Acknowledged(file, (state as State | null) ?? { answers: [], feedback: [] });
  }

  async save(): Promise<void> {
    if (this.file !== null)
      await writeFileAtomic(
        this.file,
        JSON.stringify({ answers: this.answers(), feedback: this.feedback() }),
      );
  }

  answers(): AcknowledgedAnswer[] {
    return [...this.#answers.values()];
  }

  /** Sent, whether it was acknowledged or not. */
  feedback(): SentFeedback[] {
    return [...this.#feedback.values()];
  }

  answered(answer: AcknowledgedAnswer): void {
    this.#answers.set(answer.id, answer);
  }

  /** @returns its idempotency key */
  sending(answerId: string, body: Readonly<Record<string, unknown>>): string {
    const key = randomUUID();
    this.#feedback.set(key, { key, answerId, body, entry: null });
    return key;
  }

  heard(key: string, entry: string): void {
    const sent = this.#feedback.get(key);
    if (sent !== undefined) this.#feedback.set(key, { ...sent, entry });
  }
}
