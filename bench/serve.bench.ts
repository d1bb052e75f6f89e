// Clients that stream `searchloop:rag` from the real server: time to the first token, gaps, throughput; and what
// happens above the admission bound.
//
//   npm run bench -- serve [--requests 4] [--clients 1,4,16,64]

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { demoQuestions } from './demo-questions.js';
import { type Figure, note, percentile, printReport } from './report.js';
import { askStreaming, type Stream, startServer } from './serve/streaming-server.js';

const MAX_TOKENS = 64;

export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      requests: { type: 'string', default: '4' },
      clients: { type: 'string', default: '1,4,16,64' },
    },
  });
  const counts = values.clients.split(',').map(Number);
  const questions = (await demoQuestions()).map(({ question }) => question);
  const figures: Figure[] = [];

  const queueLimit = Math.max(...counts);
  const folder = mkdtempSync(join(tmpdir(), 'searchloop-bench-'));
  const server = await startServer({
    'engine.queueLimit': queueLimit,
    'engine.maxSequences': 16,
    'store.path': join(folder, 'trajectories.db'),
  });
  const ask = asker(server.url);
  try {
    await ask(questions[0]!);
    for (const clients of counts) {
      const begin = performance.now();
      const streams = await load(ask, clients, Number(values.requests), questions);
      const seconds = (performance.now() - begin) / 1000;
      figures.push(...figuresOf(clients, streams, seconds));
      note(`${clients} clients: ${streams.length} answers in ${seconds.toFixed(1)} s`);
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
    await server.stop();
    rmSync(folder, { recursive: true });
  }
  printReport('serve', figures, [
    `searchloop:rag over the demo index, streamed, at most ${MAX_TOKENS} tokens, ${values.requests} requests a client, one process of clients on the same machine`,
  ]);
  return 0;
}

type Ask = (question: string, body?: object) => Promise<Stream>;

const asker =
  (url: string): Ask =>
  (question, body = {}) =>
    askStreaming(url, question, { model: 'searchloop:rag', max_tokens: MAX_TOKENS, ...body });

async function load(
  ask: Ask,
  clients: number,
  requests: number,
  questions: readonly string[],
): Promise<Stream[]> {
  const streams: Stream[] = [];
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      for (let index = 0; index < requests; index++)
        streams.push(await ask(questions[(client * requests + index) % questions.length]!));
    }),
  );
  return streams;
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
