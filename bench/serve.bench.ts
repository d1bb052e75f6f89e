// Clients that stream `searchloop:rag` from the real server: time to the first token, gaps, throughput; and what
// happens above the admission bound.
//
//   npm run bench -- serve [--requests 4] [--clients 1,4,16,64]

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { packageRoot } from '#searchloop/config/index.js';
import { type Figure, percentile, printReport } from './report.js';

const PORT = 8719;
const URL_BASE = `http://127.0.0.1:${PORT}`;
const MAX_TOKENS = 64;

interface Stream {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly firstMs: number;
  readonly gapsMs: readonly number[];
  readonly tokens: number;
  readonly whole: boolean;
}

export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      requests: { type: 'string', default: '4' },
      clients: { type: 'string', default: '1,4,16,64' },
    },
  });
  const counts = values.clients.split(',').map(Number);
  const questions = readFileSync(join(packageRoot, 'index', 'demo', 'questions.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { question: string }).question);
  const figures: Figure[] = [];

  const queueLimit = Math.max(...counts);
  const folder = mkdtempSync(join(tmpdir(), 'searchloop-bench-'));
  const server = await startServer(queueLimit, join(folder, 'trajectories.db'));
  try {
    await ask(questions[0]!);
    for (const clients of counts) {
      const begin = performance.now();
      const streams = await load(clients, Number(values.requests), questions);
      const seconds = (performance.now() - begin) / 1000;
      figures.push(...figuresOf(clients, streams, seconds));
      process.stderr.write(`${clients} clients: ${streams.length} answers in ${seconds.toFixed(1)} s\n`);
    }
    // Above the bound: more at once than slots and queue take; no search, which would spread the arrivals out.
    const long = { model: 'searchloop:direct', ignore_eos: true };
    const flood = await Promise.all(
      Array.from({ length: 16 + queueLimit + 24 }, (_, index) =>
        ask(questions[index % questions.length]!, long),
      ),
    );
    const refused = flood.filter(({ status }) => status === 429);
    const other = flood.filter(({ status, whole }) => status !== 429 && !(status === 200 && whole));
    figures.push(
      {
        name: 'above the bound: refused with 429',
        value: refused.length,
        unit: 'requests',
        goal: { least: 1 },
      },
      {
        name: 'above the bound: refusals without Retry-After',
        value: refused.filter(({ retryAfter }) => !(Number(retryAfter) >= 1)).length,
        unit: 'requests',
        goal: { most: 0 },
      },
      { name: 'above the bound: failed otherwise', value: other.length, unit: 'requests', goal: { most: 0 } },
    );
  } finally {
    await stopServer(server);
    rmSync(folder, { recursive: true });
  }
  printReport('serve', figures, [
    `searchloop:rag over the demo index, streamed, at most ${MAX_TOKENS} tokens, ${values.requests} requests a client, one process of clients on the same machine`,
  ]);
  return 0;
}

async function startServer(queueLimit: number, store: string): Promise<ChildProcess> {
  const settings = [
    `engine.queueLimit=${queueLimit}`,
    'engine.maxSequences=16',
    'log.level=warn',
    `store.path=${store}`,
  ];
  const child = spawn(
    process.execPath,
    [
      join(packageRoot, 'dist', 'main.js'),
      'serve',
      '--port',
      String(PORT),
      ...settings.flatMap((setting) => ['--set', setting]),
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    createInterface({ input: child.stdout! }).on('line', (line) => line.includes('answers on') && resolve());
  });
  return child;
}

async function stopServer(child: ChildProcess): Promise<void> {
  child.removeAllListeners('exit');
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await ended;
}

async function load(clients: number, requests: number, questions: readonly string[]): Promise<Stream[]> {
  const streams: Stream[] = [];
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      for (let index = 0; index < requests; index++)
        streams.push(await ask(questions[(client * requests + index) % questions.length]!));
    }),
  );
  return streams;
}

async function ask(question: string, body: object = {}): Promise<Stream> {
  const begin = performance.now();
  const response = await fetch(`${URL_BASE}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'searchloop:rag',
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: MAX_TOKENS,
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
  let rest = '';
  let tokens = 0;
  let whole = false;
  const decoder = new TextDecoder();
  for await (const bytes of response.body!) {
    rest += decoder.decode(bytes, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop()!;
    for (const line of lines) {
      if (line === 'data: [DONE]') whole = true;
      if (!line.startsWith('data: {')) continue;
      const chunk = JSON.parse(line.slice(6));
      if (chunk.choices?.[0]?.delta?.content) times.push(performance.now());
      tokens = chunk.usage?.completion_tokens ?? tokens;
    }
  }
  const gapsMs = times.slice(1).map((time, index) => time - times[index]!);
  return { status: 200, retryAfter, firstMs: (times[0] ?? performance.now()) - begin, gapsMs, tokens, whole };
}

function figuresOf(clients: number, streams: readonly Stream[], seconds: number): Figure[] {
  const first = streams.map(({ firstMs }) => firstMs);
  const gaps = streams.flatMap(({ gapsMs }) => gapsMs);
  const failed = streams.filter(({ status, whole }) => status !== 200 || !whole).length;
  const name = (text: string) => `${clients} clients: ${text}`;
  return [
    { name: name('failed'), value: failed, unit: 'requests', goal: { most: 0 } },
    { name: name('time to first token, median'), value: percentile(first, 0.5), unit: 'ms', goal: null },
    { name: name('time to first token, p95'), value: percentile(first, 0.95), unit: 'ms', goal: null },
    { name: name('gap, median'), value: percentile(gaps, 0.5), unit: 'ms', goal: null },
    { name: name('gap, p95'), value: percentile(gaps, 0.95), unit: 'ms', goal: null },
    {
      name: name('throughput'),
      value: streams.reduce((sum, { tokens }) => sum + tokens, 0) / seconds,
      unit: 'tokens/s',
      goal: null,
    },
  ];
}
