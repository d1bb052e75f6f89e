// One question to the server, by each of the three ways, and what its answer says of the version that gave it.

import WebSocket from 'ws';
import { eventData } from '../http.js';

export type Way = 'plain' | 'sse' | 'socket';

export interface Answer {
  readonly way: Way;
  /** Under which feedback finds it. */
  readonly id: string;
  readonly text: string;
  /** Every version that any part of it names. */
  readonly versions: readonly string[];
  /** Every fingerprint in it. */
  readonly fingerprints: readonly string[];
  readonly ms: number;
}

interface Completion {
  readonly id: string;
  readonly system_fingerprint: string;
  readonly choices: readonly { readonly message: { readonly content: string } }[];
  readonly usage: { readonly searchloop: { readonly model_version: string } };
}

interface Chunk {
  readonly id: string;
  readonly system_fingerprint: string;
  readonly choices: readonly { readonly delta: { readonly content?: string } }[];
  readonly usage?: { readonly searchloop: { readonly model_version: string } } | null;
  readonly error?: { readonly message: string };
}

export interface Asker {
  ask(question: string): Promise<Answer>;
  close(): void;
}

/** @throws {Error} the request failed, in words */
export function createAsker(way: Way, url: string, key: string): Asker {
  switch (way) {
    case 'plain':
      return { ask: (question) => askPlain(url, key, question), close: () => {} };
    case 'sse':
      return { ask: (question) => askStream(url, key, question), close: () => {} };
    case 'socket':
      return socketAsker(url, key);
  }
}

export const bodyOf = (question: string, more: object = {}) => ({
  model: 'searchloop',
  messages: [{ role: 'user', content: question }],
  ...more,
});

export async function postChat(url: string, key: string, body: object): Promise<Response> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return response;
}

const headerOf = (response: Response): string[] => {
  const version = response.headers.get('x-searchloop-version');
  return version === null ? [] : [version];
};

async function askPlain(url: string, key: string, question: string): Promise<Answer> {
  const begun = performance.now();
  const response = await postChat(url, key, bodyOf(question));
  const completion = (await response.json()) as Completion;
  return answerOf('plain', completion, headerOf(response), begun);
}

function answerOf(way: Way, completion: Completion, versions: readonly string[], begun: number): Answer {
  const { id, choices, usage, system_fingerprint } = completion;
  return {
    way,
    id,
    text: choices[0]?.message.content ?? '',
    versions: [...new Set([...versions, usage.searchloop.model_version])],
    fingerprints: [system_fingerprint],
    ms: performance.now() - begun,
  };
}

async function askStream(url: string, key: string, question: string): Promise<Answer> {
  const begun = performance.now();
  const response = await postChat(
    url,
    key,
    bodyOf(question, { stream: true, stream_options: { include_usage: true } }),
  );
  const versions = new Set(headerOf(response));
  const fingerprints = new Set<string>();
  let [id, text, isWhole] = ['', '', false];
  for await (const data of eventData(response.body!)) {
    if (data === '[DONE]') {
      isWhole = true;
      continue;
    }
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error !== undefined) throw new Error(chunk.error.message);
    id = chunk.id;
    fingerprints.add(chunk.system_fingerprint);
    text += chunk.choices[0]?.delta.content ?? '';
    const version = chunk.usage?.searchloop.model_version;
    if (version !== undefined) versions.add(version);
  }
  if (!isWhole || versions.size === 0) throw new Error('the stream ended before its end');
  return {
    way: 'sse',
    id,
    text,
    versions: [...versions],
    fingerprints: [...fingerprints],
    ms: performance.now() - begun,
  };
}

/** One socket for all questions, opened by the first and again where it was lost. */
function socketAsker(url: string, key: string): Asker {
  let open: Promise<WebSocket> | null = null;
  let count = 0;
  const connect = (): Promise<WebSocket> =>
    new Promise((resolve, reject) => {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/stream`, {
        headers: { authorization: `Bearer ${key}` },
      });
      socket.once('open', () => resolve(socket));
      socket.once('error', reject);
    });
  return {
    async ask(question) {
      const begun = performance.now();
      open ??= connect();
      const socket = await open;
      const id = `q${count++}`;
      try {
        const done = await exchange(socket, { type: 'request', id, body: bodyOf(question) });
        return answerOf('socket', done, [], begun);
      } catch (error) {
        open = null;
        socket.terminate();
        throw error;
      }
    },
    close: () => void open?.then((socket) => socket.close()).catch(() => {}),
  };
}

function exchange(
  socket: WebSocket,
  frame: { readonly id: string; readonly [field: string]: unknown },
): Promise<Completion> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      socket.off('message', take);
      socket.off('close', lost);
    };
    const lost = (): void => {
      end();
      reject(new Error('the socket was closed'));
    };
    const take = (data: WebSocket.RawData): void => {
      const event = JSON.parse(String(data));
      if (event.id !== frame.id || (event.type !== 'done' && event.type !== 'error')) return;
      end();
      if (event.type === 'done') resolve(event.response as Completion);
      else reject(new Error(`${event.status}: ${event.error?.message}`));
    };
    socket.on('message', take);
    socket.once('close', lost);
    socket.send(JSON.stringify(frame));
  });
}
