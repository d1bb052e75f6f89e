// Gaps between the tokens of a streaming client while `searchloop train` runs on the same machine, over the same without.
// The trainer is the same pool thread at the same priority whether the command line or the loop of a server starts it; a
// server's loop moreover holds back when users come, so this is the harder case.
//
//   npm run bench -- train-serve [--rounds 4] [--requests 6]
//
// About three minutes on two cores.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { homeFolder, loadConfig } from '#searchloop/config/index.js';
import { ensureModel } from '#searchloop/model/index.js';
import { note, percentile, printReport } from './report.js';
import { SEARCHLOOP, sets } from './searchloop.js';
import { askStreaming, type Stream, startServer } from './serve/streaming-server.js';
import { textsOf } from './training/shared-setup.js';

const MAX_TOKENS = 128;
const SEQUENCE = 1024;
const SEQUENCES = 4;
/** Jiffies a second in /proc. */
const CLOCK_TICKS = 100;

interface Load {
  readonly gapsMs: number[];
  seconds: number;
  failed: number;
}

export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { rounds: { type: 'string', default: '4' }, requests: { type: 'string', default: '6' } },
  });
  const [rounds, requests] = [Number(values.rounds), Number(values.requests)];
  const folder = mkdtempSync(join(tmpdir(), 'searchloop-bench-'));
  const server = await startServer({ 'store.kind': 'none', 'engine.maxSequences': 4 });
  let trainer: ChildProcess | null = null;
  const alone: Load = { gapsMs: [], seconds: 0, failed: 0 };
  const beside: Load = { gapsMs: [], seconds: 0, failed: 0 };
  let trainerSeconds = 0;
  try {
    await ask(server.url, 0);
    trainer = await startTrainer(folder);
    const pid = trainer.pid as number;
    for (let round = 0; round < rounds; round++)
      for (const training of round % 2 === 0 ? [false, true] : [true, false]) {
        trainer.kill(training ? 'SIGCONT' : 'SIGSTOP');
        const before = processorSeconds(pid);
        await stream(server.url, training ? beside : alone, requests);
        if (training) trainerSeconds += processorSeconds(pid) - before;
        note(`round ${round + 1}, ${training ? 'with' : 'without'} training: done`);
      }
  } finally {
    trainer?.removeAllListeners('exit');
    trainer?.kill('SIGKILL');
    await server.stop();
    rmSync(folder, { recursive: true });
  }
  const [without, with_] = [percentile(alone.gapsMs, 0.95), percentile(beside.gapsMs, 0.95)];
  const medians = [percentile(alone.gapsMs, 0.5), percentile(beside.gapsMs, 0.5)] as const;
  printReport(
    'train-serve',
    [
      { name: 'gap p95, without training', value: without, unit: 'ms', goal: null },
      { name: 'gap p95, with training', value: with_, unit: 'ms', goal: null },
      { name: 'gap p95, with over without', value: with_ / without, unit: 'x', goal: { most: 1.15 } },
      { name: 'gap median, with over without', value: medians[1] / medians[0], unit: 'x', goal: null },
      {
        name: 'cores that the trainer got beside the client',
        value: trainerSeconds / beside.seconds,
        unit: 'cores',
        // Else there was no training to be disturbed by.
        goal: { least: 0.02 },
      },
      { name: 'failed requests', value: alone.failed + beside.failed, unit: 'requests', goal: { most: 0 } },
    ],
    [
      `SmolLM2-135M, searchloop:chat, one client, ${MAX_TOKENS} tokens a request, ${requests} requests a round, ${rounds} rounds of each, in turns (the trainer is stopped and continued); ${alone.gapsMs.length} and ${beside.gapsMs.length} gaps`,
      `trainer: searchloop train sft with its default settings, sequences of ${SEQUENCE} tokens`,
    ],
  );
  return 0;
}

const QUESTIONS = ['Tell me about the Danube.', 'How do glaciers form?', 'What did Marie Curie find?'];

const ask = (url: string, index: number): Promise<Stream> =>
  askStreaming(url, QUESTIONS[index % QUESTIONS.length] as string, {
    model: 'searchloop:chat',
    max_tokens: MAX_TOKENS,
    ignore_eos: true,
  });

async function stream(url: string, load: Load, requests: number): Promise<void> {
  const begin = performance.now();
  for (let index = 0; index < requests; index++) {
    const { status, whole, gapsMs } = await ask(url, index);
    if (status !== 200 || !whole || gapsMs.length < MAX_TOKENS / 2) load.failed += 1;
    load.gapsMs.push(...gapsMs);
  }
  load.seconds += (performance.now() - begin) / 1000;
}

/** Starts a training run without an end and waits for its first step. */
async function startTrainer(folder: string): Promise<ChildProcess> {
  const data = join(folder, 'data.jsonl');
  const model = await ensureModel('smollm2-135m-instruct', homeFolder(loadConfig()));
  const texts = await textsOf(model, SEQUENCES, SEQUENCE);
  const lines = texts.map(({ tokenIds, targets }, i) => {
    const learnt = new Set(targets);
    const lossMask = tokenIds.map((_, t) => Number(learnt.has(t)));
    return JSON.stringify({ record: { id: `text-${i}`, tokenIds, lossMask } });
  });
  writeFileSync(data, `${lines.join('\n')}\n`);
  const settings = { 'training.steps': 1_000_000, 'training.batchSequences': 1 };
  const child = spawn(
    process.execPath,
    [SEARCHLOOP, 'train', 'sft', '--data', data, '--output', join(folder, 'run'), ...sets(settings)],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let printed = '';
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) =>
      reject(new Error(`the trainer ended with ${code}: ${printed.slice(-2000)}`)),
    );
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      printed = (printed + text).slice(-4000);
      if (/step 1\//.test(printed)) resolve();
    });
  });
  return child;
}

/** Processor time of all threads so far. */
function processorSeconds(pid: number): number {
  // The name in brackets may hold spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS;
}
