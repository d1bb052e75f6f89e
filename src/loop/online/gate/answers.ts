// Greedy answers of versions to the gate's questions. They do not change, so those of the live version are asked for once; and
// they are kept on disk, so that a verdict that was broken off goes on where it was. What is kept is no text: an answer's
// fingerprint, under a digest of the conversation that it answers.

import { appendFile } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { type AnswerFingerprint, fingerprintOf } from '../../../reward/index.js';
import type { TrajectoryRecord } from '../../../trajectory/index.js';
import { writeFileAtomic } from '../../../util/atomic-file.js';
import { readJsonLines } from '../../../util/json-lines.js';
import { OneAtATime } from '../../../util/one-at-a-time.js';

export interface GivenAnswer {
  /** Digest of the conversation. */
  readonly asked: string;
  /** Null where it gave none. What it is worth depends on gold answers, which people correct. */
  readonly answer: AnswerFingerprint | null;
  readonly validActions: number;
  readonly invalidActions: number;
}

type Answered = Pick<TrajectoryRecord, 'answer' | 'validActions' | 'invalidActions'>;

export const givenAnswer = (
  asked: string,
  { answer, validActions, invalidActions }: Answered,
): GivenAnswer => ({
  asked,
  answer: answer === null ? null : fingerprintOf(answer),
  validActions,
  invalidActions,
});

export interface AnswerFile {
  readonly path: string;
  /** Of all that decides an answer beside version, index and conversation: under another stamp nothing is taken over. */
  readonly stamp: string;
  readonly onNote: (line: string) => void;
}

const MOST = 20_000;
/** Lines between two breaths of the thread. */
const AT_ONCE = 500;

export class GateAnswers {
  readonly #given = new Map<string, GivenAnswer>();
  /** Conversations whose answers are kept; null: nobody has said yet. */
  #wanted: ReadonlySet<string> | null = null;
  #opened: Promise<void> | null = null;
  readonly #writes = new OneAtATime();
  #isTold = false;

  /** @param file  null keeps them in memory only */
  constructor(private readonly file: AnswerFile | null = null) {}

  /** Reads what was kept, once. */
  open(): Promise<void> {
    this.#opened ??= this.#read();
    return this.#opened;
  }

  get(name: string): GivenAnswer | undefined {
    return this.#given.get(name);
  }

  /** @param name  of version, index and conversation */
  add(name: string, asked: string, record: Answered): Promise<void> {
    // It was under way when its conversation went.
    if (this.isGone(asked)) return Promise.resolve();
    const given = givenAnswer(asked, record);
    this.#given.set(name, given);
    return this.#write(({ path }) => appendFile(path, lineOf(name, given)));
  }

  /** Answers to other conversations go, and none is taken any more: those who asked may have had them deleted. */
  forgetAllBut(asked: ReadonlySet<string>): Promise<void> {
    this.#wanted = asked;
    return this.#keep(asked);
  }

  /** None is one to compare with any more. */
  forgetAll(): Promise<void> {
    return this.#keep(new Set());
  }

  /** Not among those that were said to be kept last. */
  isGone(asked: string): boolean {
    return this.#wanted !== null && !this.#wanted.has(asked);
  }

  async #keep(asked: ReadonlySet<string>): Promise<void> {
    await this.open();
    const before = this.#given.size;
    for (const [name, given] of this.#given) if (!asked.has(given.asked)) this.#given.delete(name);
    for (const name of this.#given.keys()) {
      if (this.#given.size <= MOST) break;
      this.#given.delete(name);
    }
    if (this.#given.size < before) await this.#rewrite();
  }

  async #read(): Promise<void> {
    if (this.file === null) return;
    const { path, stamp, onNote } = this.file;
    try {
      for await (const { value, line } of readJsonLines(path)) {
        if (line === 1 && (value as Head).stamp !== stamp) break;
        const { name, ...given } = value as GivenAnswer & { name?: string };
        if (name !== undefined) this.#given.set(name, given);
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        onNote(`answers for the gate are asked anew: ${(error as Error).message}`);
      this.#given.clear();
    }
    await this.#rewrite();
  }

  #rewrite(): Promise<void> {
    return this.#write(async ({ path, stamp }) => {
      const lines = [`${JSON.stringify({ stamp })}\n`];
      for (const [name, given] of [...this.#given]) {
        lines.push(lineOf(name, given));
        if (lines.length % AT_ONCE === 0) await setImmediate();
      }
      await writeFileAtomic(path, lines.join(''));
    });
  }

  /** One after the other. A disk that takes nothing costs what a restart would have saved, no verdict. */
  #write(write: (file: AnswerFile) => Promise<void>): Promise<void> {
    const { file } = this;
    if (file === null) return Promise.resolve();
    return this.#writes
      .run(() => write(file))
      .catch((error: Error) => {
        if (!this.#isTold) file.onNote(`answers for the gate are not kept on disk: ${error.message}`);
        this.#isTold = true;
      });
  }
}

interface Head {
  readonly stamp?: string;
}

const lineOf = (name: string, given: GivenAnswer): string => `${JSON.stringify({ name, ...given })}\n`;
