// The real server in a process of its own, and a client that streams from it.

import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { packageRoot } from '#searchloop/config/index.js';
import { eventData } from './event-data.js';

const PORT = 8719;
const URL_BASE = `http://127.0.0.1:${PORT}`;

export interface Stream {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly firstMs: number;
  readonly gapsMs: readonly number[];
  readonly tokens: number;
  readonly whole: boolean;
}

/** The built server with the default policy; `settings` are `section.key=value`. */
export async function startServer(settings: readonly string[]): Promise<ChildProcess> {
  const child = spawn(
    process.execPath,
    [
      join(packageRoot, 'dist', 'main.js'),
      'serve',
      '--port',
      String(PORT),
      ...['log.level=warn', ...settings].flatMap((setting) => ['--set', setting]),
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    createInterface({ input: child.stdout! }).on('line', (line) => line.includes('answers on') && resolve());
  });
  return child;
}

export async function stopServer(child: ChildProcess): Promise<void> {
  child.removeAllListeners('exit');
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await ended;
}

/** Streams one chat completion; gaps are between content deltas. */
export async function askStreaming(question: string, body: object): Promise<Stream> {
  const begin = performance.now();
  const response = await fetch(`${URL_BASE}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: 'user', content: question }],
      ...body,
    }),
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
