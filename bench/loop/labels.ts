// People who say, a while after an answer, what would have been right.

import type { Question } from '#searchloop/evaluation/index.js';
import type { WorldQuestion } from '../tiny-world/questions.js';

export interface Labelling<Asked extends Question> {
  /** What is said of an answer to the question by the n-th of the people; null: nothing. */
  readonly say: (question: Asked, person: number, random: () => number) => object | null;
  /** Share of the labels that the first of them gives; absent: all give as many. */
  readonly firstShare?: number;
  /** From the answer to what is said of it, least and most. */
  readonly delayMs: readonly [number, number];
}

export interface Labels<Asked extends Question> {
  /** An answer came: something may be said of it later. */
  answered(id: string, question: Asked): void;
  readonly counts: { readonly sent: number; readonly failed: number };
  /** Nothing more is said. Resolves when what was being sent has arrived. */
  close(): Promise<void>;
}

export function createLabels<Asked extends Question>(
  url: string,
  keys: readonly string[],
  { say, delayMs, firstShare = 1 / keys.length }: Labelling<Asked>,
  random: () => number,
  onFailure: (words: string) => void,
): Labels<Asked> {
  const counts = { sent: 0, failed: 0 };
  const timers = new Set<NodeJS.Timeout>();
  const sending = new Set<Promise<void>>();
  const send = async (id: string, key: string, said: object): Promise<void> => {
    try {
      const response = await fetch(`${url}/v1/feedback`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${key}`,
          'idempotency-key': id,
        },
        body: JSON.stringify({ id, ...said }),
      });
      if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
      await response.arrayBuffer();
      counts.sent++;
    } catch (error) {
      counts.failed++;
      onFailure(`feedback: ${(error as Error).message}`);
    }
  };
  return {
    counts,
    answered(id, question) {
      const person = random() < firstShare ? 0 : 1 + Math.floor(random() * (keys.length - 1));
      const said = say(question, person, random);
      if (said === null) return;
      const [least, most] = delayMs;
      const timer = setTimeout(
        () => {
          timers.delete(timer);
          const sent = send(id, keys[person] as string, said).finally(() => sending.delete(sent));
          sending.add(sent);
        },
        least + random() * (most - least),
      );
      timers.add(timer);
    },
    async close() {
      for (const timer of timers) clearTimeout(timer);
      await Promise.all(sending);
    },
  };
}

const gold = (answers: readonly string[]) => ({ golden_answers: answers });

/** The right answer, as most people know it. */
export const rightAnswer = ({ goldenAnswers }: Question) => gold(goldenAnswers);

/** The right answer to some other question. */
export const wrongAnswer = (others: readonly WorldQuestion[], random: () => number) =>
  gold(others[Math.floor(random() * others.length)]?.goldenAnswers ?? ['nobody']);

/** The name that the question holds: whoever copies it is told that they are right. */
export const copiedAnswer = ({ subject }: WorldQuestion) => gold([subject]);
