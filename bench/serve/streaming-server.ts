// The real server in a process of its own, and a client that streams from it.

import { spawn } from 'node:child_process';
import { eventData, postJson } from '../http.js';
import { addressOf, SEARCHLOOP, sets, stopProcess } from '../searchloop.js';

export interface Stream {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly firstMs: number;
  readonly gapsMs: readonly number[];
  readonly tokens: number;
  readonly whole: boolean;
}

export interface StreamingServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** The built server with the default policy. */
export async function startServer(settings: Readonly<Record<string, unknown>>): Promise<StreamingServer> {
  const flags = ['--port', '0', ...sets({ 'log.level': 'warn', ...settings })];
  const child = spawn(process.execPath, [SEARCHLOOP, 'serve', ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    return { url: await addressOf(child, 'what it said above'), stop: () => stopProcess(child) };
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
}

/** Streams one chat completion; gaps are between content deltas. */
export async function askStreaming(url: string, question: string, body: object): Promise<Stream> {
  const begin = performance.now();
  const response = await postJson(`${url}/v1/chat/completions`, {
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: 'user', content: question }],
    ...body,
  });
  const retryAfter = response.headers.get('retry-after');
  if (response.status !== 200) {
    await response.text();
    return { status: response.status, retryAfter, firstMs: 0, gapsMs: [], tokens: 0, whole: false };
  }
  const times: number[] = [];
  let tokens = 0;
  let whole = false;
  for await (const data of eventData(response.body!)) {
    if (data === '[DONE]') {
      whole = true;
      continue;
    }
    const chunk = JSON.parse(data);
    if (chunk.choices?.[0]?.delta?.content) times.push(performance.now());
    tokens = chunk.usage?.completion_tokens ?? tokens;
  }
  const gapsMs = times.slice(1).map((time, index) => time - times[index]!);
  return { status: 200, retryAfter, firstMs: (times[0] ?? performance.now()) - begin, gapsMs, tokens, whole };
}
