// Users who ask one question after the other, and the pulse: streams that tell how long a decode step takes.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Question } from '#searchloop/evaluation/index.js';
import { eventData } from '../http.js';
import { type Answer, bodyOf, createAsker, postChat, type Way } from './answers.js';

export interface AnsweredUser<Asked extends Question> extends Answer {
  readonly question: Asked;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface Users {
  readonly failures: readonly string[];
  /** They finish what they asked and go. */
  close(): Promise<void>;
}

export interface UserSettings<Asked extends Question> {
  readonly url: string;
  readonly key: string;
  /** One user each. */
  readonly ways: readonly Way[];
  readonly pauseMs: number;
  readonly next: () => Asked | null;
  readonly random: () => number;
  readonly onAnswer: (answered: AnsweredUser<Asked>) => void;
}

export function startUsers<Asked extends Question>(settings: UserSettings<Asked>): Users {
  const failures: string[] = [];
  const closed = new AbortController();
  const live = async (way: Way): Promise<void> => {
    const asker = createAsker(way, settings.url, settings.key);
    while (!closed.signal.aborted) {
      const question = settings.next();
      if (question === null) break;
      try {
        const answer = await asker.ask(question.question);
        settings.onAnswer({ ...answer, question, at: Date.now() });
      } catch (error) {
        failures.push(`${way}: ${(error as Error).message}`);
      }
      const pause = settings.pauseMs * (0.5 + settings.random());
      await sleep(pause, undefined, { signal: closed.signal }).catch(() => {});
    }
    asker.close();
  };
  const lives = settings.ways.map(live);
  return {
    failures,
    async close() {
      closed.abort();
      await Promise.all(lives);
    },
  };
}

/** Pause between two tokens of one stream; milliseconds since 1970. */
export interface Gap {
  readonly from: number;
  readonly to: number;
}

export interface Pulse {
  readonly gaps: readonly Gap[];
  readonly failures: readonly string[];
  /** Runs from now on, or rests. */
  run(isOn: boolean): void;
  close(): Promise<void>;
}

const PULSE_TOKENS = 200;

export interface PulseSettings {
  readonly streams: number;
  /** Tokens that a client does not see, as tags: without them each step is an event. */
  readonly hidden: readonly number[];
}

interface TextChunk {
  readonly choices?: readonly {
    readonly delta: { readonly content?: string; readonly reasoning_content?: string };
  }[];
}

/** Streams of the live version that search nothing and never end by themselves, each token an event. Nothing of them is kept. */
export function startPulse(url: string, key: string, { streams, hidden }: PulseSettings): Pulse {
  const gaps: Gap[] = [];
  const failures: string[] = [];
  const closed = new AbortController();
  let isOn = false;
  const body = bodyOf('who founded it ?', {
    model: 'searchloop:direct',
    stream: true,
    store: false,
    ignore_eos: true,
    logit_bias: Object.fromEntries(hidden.map((id) => [id, -100])),
    max_tokens: PULSE_TOKENS,
  });
  const beat = async (): Promise<void> => {
    let before: number | null = null;
    for await (const data of eventData((await postChat(url, key, body)).body!)) {
      const delta = data === '[DONE]' ? undefined : (JSON.parse(data) as TextChunk).choices?.[0]?.delta;
      if (!delta?.content && !delta?.reasoning_content) continue;
      const now = performance.timeOrigin + performance.now();
      if (before !== null) gaps.push({ from: before, to: now });
      before = now;
    }
    if (before === null) throw new Error('a stream without a token');
  };
  const live = async (): Promise<void> => {
    while (!closed.signal.aborted) {
      if (isOn) await beat().catch((error: Error) => failures.push(`pulse: ${error.message}`));
      else await sleep(20);
    }
  };
  const lives = Array.from({ length: streams }, live);
  return {
    gaps,
    failures,
    run: (on) => {
      isOn = on;
    },
    async close() {
      closed.abort();
      await Promise.all(lives);
    },
  };
}
