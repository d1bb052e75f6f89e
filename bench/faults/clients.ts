// People who ask without pause, whole, streamed and over WebSocket, and say how good the answer was.

import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { eventData, postJson } from '../http.js';
import type { Acknowledged } from './acknowledged.js';
import type { House } from './houses.js';
import { monotonicNow } from './monotonic.js';

/** An answer as its client saw it. Times are those of `monotonicNow`. */
export interface SeenAnswer {
  readonly how: 'whole' | 'stream' | 'socket';
  readonly id: string;
  readonly text: string | null;
  readonly stored: boolean;
  readonly version: string;
  readonly begun: number;
  readonly ended: number;
  /** Longest pause between two events of a stream before its last ones; 0 where it is none. */
  readonly longestGapMs: number;
  /** From the last token to the end. */
  readonly endMs: number;
}

export interface LoadOptions {
  readonly url: string;
  readonly house: House;
  readonly acknowledged: Acknowledged;
  readonly random: () => number;
  /** Pause of each client between two questions. */
  readonly pauseMs?: number;
}

interface Completion {
  readonly id: string;
  readonly choices: readonly {
    readonly message: { readonly content: string | null };
    readonly searchloop?: { readonly answer_id: string; readonly stored: boolean };
  }[];
  readonly usage: { readonly searchloop: { readonly model_version: string } };
}

interface Chunk {
  readonly id: string;
  readonly choices: readonly {
    readonly delta: { readonly content?: string };
    readonly finish_reason: string | null;
    readonly searchloop?: { readonly answer_id: string; readonly stored: boolean };
  }[];
  readonly usage?: Completion['usage'] | null;
  readonly error?: unknown;
}

/** Share of the answers that get feedback. */
const FEEDBACK = 0.7;
const KINDS = ['whole', 'stream', 'socket', 'whole', 'stream'] as const;

export class Load {
  readonly seen: SeenAnswer[] = [];
  /** Requests that failed while the server was there. */
  readonly failures: string[] = [];
  /** Feedback that the server could not store at that time. */
  feedbackPutOff = 0;
  #going = true;
  #killed = false;
  readonly #clients: Promise<void>[];

  constructor(private readonly options: LoadOptions) {
    this.#clients = KINDS.map((kind) => this.#client(kind));
  }

  /** The server is about to be killed: what fails from now on is no fault. */
  expectKill(): void {
    this.#killed = true;
    this.#going = false;
  }

  /** No further questions; waits for the answers under way. */
  async end(): Promise<void> {
    this.#going = false;
    await Promise.all(this.#clients);
  }

  async #client(kind: (typeof KINDS)[number]): Promise<void> {
    const { random, house, pauseMs = 0 } = this.options;
    let socket: WebSocket | null = null;
    while (this.#going) {
      const asked = house.questions[Math.floor(random() * house.questions.length)]!;
      const body = {
        ...house.request,
        messages: [{ role: 'user', content: asked.question }],
        user: `user-${Math.floor(random() * 5)}`,
      };
      try {
        if (kind === 'socket' && socket?.readyState !== WebSocket.OPEN) socket = await this.#connect();
        const answer =
          kind === 'whole'
            ? await this.#whole(body)
            : kind === 'stream'
              ? await this.#stream(body)
              : await this.#overSocket(socket!, body);
        this.seen.push(answer);
        if (answer.stored) {
          const { id, text, version } = answer;
          this.options.acknowledged.answered({ id, text, version });
          if (random() < FEEDBACK) await this.#say(id, asked.goldenAnswers);
        }
      } catch (error) {
        if (this.#killed) break;
        this.failures.push(`${kind}: ${(error as Error).message}`);
        await sleep(50);
      }
      if (pauseMs > 0) await sleep(random() * 2 * pauseMs);
    }
    socket?.terminate();
  }

  async #whole(body: object): Promise<SeenAnswer> {
    const begun = monotonicNow();
    const response = await postJson(`${this.options.url}/v1/chat/completions`, body);
    const completion = JSON.parse(await text200(response)) as Completion;
    return {
      ...ofCompletion(completion),
      how: 'whole',
      begun,
      ended: monotonicNow(),
      longestGapMs: 0,
      endMs: 0,
    };
  }

  async #stream(body: object): Promise<SeenAnswer> {
    const begun = monotonicNow();
    const response = await postJson(`${this.options.url}/v1/chat/completions`, {
      ...body,
      stream: true,
      stream_options: { include_usage: true },
    });
    if (response.status !== 200) await text200(response);
    const gaps = new Gaps();
    let text = '';
    let told: Chunk['choices'][number]['searchloop'];
    let version = '';
    let whole = false;
    for await (const data of eventData(response.body!)) {
      if (data === '[DONE]') {
        whole = true;
        continue;
      }
      const chunk = JSON.parse(data) as Chunk;
      if (chunk.error !== undefined) throw new Error(`in the stream: ${JSON.stringify(chunk.error)}`);
      const [choice] = chunk.choices;
      if (choice?.finish_reason === null) gaps.event();
      text += choice?.delta.content ?? '';
      told = choice?.searchloop?.answer_id === undefined ? told : choice.searchloop;
      version = chunk.usage?.searchloop.model_version ?? version;
    }
    if (!whole || told === undefined) throw new Error('the stream broke off');
    return {
      how: 'stream',
      id: told.answer_id,
      text: text === '' ? null : text,
      stored: told.stored,
      version,
      begun,
      ...gaps.end(),
    };
  }

  async #connect(): Promise<WebSocket> {
    const socket = new WebSocket(`${this.options.url.replace('http', 'ws')}/v1/stream`);
    socket.on('error', () => {});
    await once(socket, 'open');
    return socket;
  }

  #overSocket(socket: WebSocket, body: object): Promise<SeenAnswer> {
    const begun = monotonicNow();
    const gaps = new Gaps();
    const id = `r${begun}`;
    return new Promise((resolve, reject) => {
      const onClose = (): void => reject(new Error('the socket was closed'));
      const settle = (act: () => void): void => {
        socket.off('message', onMessage);
        socket.off('close', onClose);
        act();
      };
      const onMessage = (data: Buffer): void => {
        const frame = JSON.parse(data.toString()) as { type: string; response?: Completion; error?: unknown };
        if (frame.type === 'error') settle(() => reject(new Error(JSON.stringify(frame.error))));
        else if (frame.type !== 'done') gaps.event();
        else
          settle(() =>
            resolve({ ...ofCompletion(frame.response as Completion), how: 'socket', begun, ...gaps.end() }),
          );
      };
      socket.on('message', onMessage);
      socket.once('close', onClose);
      socket.send(JSON.stringify({ type: 'request', id, body }));
    });
  }

  async #say(answerId: string, goldenAnswers: readonly string[]): Promise<void> {
    const { acknowledged, random } = this.options;
    const body = random() < 0.7 ? { golden_answers: goldenAnswers } : { reward: random() < 0.5 ? 1 : 0 };
    const key = acknowledged.sending(answerId, body);
    try {
      await sendFeedback(this.options.url, acknowledged, key, answerId, body);
    } catch (error) {
      // It cannot be stored for now, and is told so: to be sent again, and nothing was promised.
      if (!(error as Error).message.startsWith('status 503')) throw error;
      this.feedbackPutOff++;
    }
  }
}

/** Sends feedback under its key; what the server says is noted. @throws it was not acknowledged */
export async function sendFeedback(
  url: string,
  acknowledged: Acknowledged,
  key: string,
  answerId: string,
  body: Readonly<Record<string, unknown>>,
): Promise<void> {
  const response = await postJson(
    `${url}/v1/feedback`,
    { id: answerId, ...body },
    { 'idempotency-key': key },
  );
  const answer = JSON.parse(await text200(response)) as { id: string; stored: boolean };
  if (answer.stored) acknowledged.heard(key, answer.id);
}

async function text200(response: Response): Promise<string> {
  const text = await response.text();
  if (response.status !== 200) throw new Error(`status ${response.status}: ${text.slice(0, 300)}`);
  return text;
}

function ofCompletion({ id, choices, usage }: Completion) {
  const [choice] = choices;
  return {
    id: choice?.searchloop?.answer_id ?? id,
    text: choice?.message.content ?? null,
    stored: choice?.searchloop?.stored ?? false,
    version: usage.searchloop.model_version,
  };
}

class Gaps {
  #last: number | null = null;
  #longest = 0;

  event(): void {
    const now = monotonicNow();
    if (this.#last !== null) this.#longest = Math.max(this.#longest, now - this.#last);
    this.#last = now;
  }

  end(): Pick<SeenAnswer, 'ended' | 'longestGapMs' | 'endMs'> {
    const ended = monotonicNow();
    return { ended, longestGapMs: this.#longest, endMs: this.#last === null ? 0 : ended - this.#last };
  }
}
