// kill -9 at random moments of a training run in the tiny world: `searchloop train ... --resume` then has to end with the
// very adapter and figures of the undisturbed run.
//
//   npm run bench -- kills [--kills 20] [--algorithm grpo] [--steps 5] [--seed N] [--threads N] [--folder PATH] [--resume]
//
// About six minutes on two cores. --resume keeps what a stopped bench with the same settings has done.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { readMetrics } from '#searchloop/training/index.js';
import { canonicalJson, sha256File, sha256Hex } from '#searchloop/util/digest.js';
import { randomNumbers } from '#searchloop/util/random.js';
import { note, printReport, resultsFolder } from './report.js';
import { SEARCHLOOP, sets } from './searchloop.js';
import { openTinyPlace, TINY_SETTINGS, type TinyPlace } from './tiny-world/house.js';
import { worldQuestions } from './tiny-world/questions.js';
import { TINY_TRAINING } from './tiny-world/run.js';

/** A killed run that ended before its moment came is started again with an earlier one, so often. */
const MOST_DRAWS = 5;

interface Bench {
  readonly folder: string;
  /** Command line up to the output folder. */
  readonly command: readonly string[];
}

interface Ending {
  /** Sum of the adapter's weights. */
  readonly adapter: string;
  /** Figures of all steps but the times. */
  readonly figures: string;
}

interface Kill {
  /** Since the process started. */
  readonly afterSeconds: number;
  /** The last whole checkpoint that the kill left; -1: none. */
  readonly step: number;
  readonly sameAdapter: boolean;
  readonly sameFigures: boolean;
  /** Of the resume. */
  readonly exitCode: number;
}

export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      kills: { type: 'string', default: '20' },
      algorithm: { type: 'string', default: 'grpo' },
      steps: { type: 'string', default: '5' },
      seed: { type: 'string', default: String(Date.now() % 100_000) },
      threads: { type: 'string', default: String(availableParallelism()) },
      folder: { type: 'string', default: resultsFolder('kills') },
      resume: { type: 'boolean', default: false },
    },
  });
  const place = await openTinyPlace(values.folder);
  const command = commandLine(place, values);
  const bench = { folder: join(values.folder, sha256Hex(canonicalJson(command)).slice(0, 8)), command };
  if (!values.resume) rmSync(bench.folder, { recursive: true, force: true });
  mkdirSync(bench.folder, { recursive: true });
  const undisturbed = await undisturbedRun(bench);
  note(`undisturbed: ${undisturbed.seconds.toFixed(1)} s, adapter ${undisturbed.adapter.slice(0, 12)}`);
  const random = randomNumbers(Number(values.seed));
  const kills: Kill[] = [];
  for (let number = 1; number <= Number(values.kills); number++) {
    // Drawn for kills that are kept too: the others stay what they were.
    const draws = Array.from({ length: MOST_DRAWS }, () => random());
    const kill = await keptOr(join(bench.folder, `kill-${number}.json`), () =>
      killAndResume(bench, number, draws, undisturbed),
    );
    kills.push(kill);
    note(
      `kill ${number} after ${kill.afterSeconds.toFixed(1)} s at step ${kill.step}: ${kill.sameAdapter && kill.sameFigures ? 'same' : 'DIFFERENT'}`,
    );
  }
  const count = (which: (kill: Kill) => boolean): number => kills.filter(which).length;
  printReport(
    'kills',
    [
      { name: 'kills', value: kills.length, unit: 'runs', goal: { least: 20 } },
      {
        name: 'ended with another adapter',
        value: count((k) => !k.sameAdapter),
        unit: 'runs',
        goal: { most: 0 },
      },
      {
        name: 'ended with other figures',
        value: count((k) => !k.sameFigures),
        unit: 'runs',
        goal: { most: 0 },
      },
      { name: 'resumes that failed', value: count((k) => k.exitCode !== 0), unit: 'runs', goal: { most: 0 } },
      { name: 'killed before the first step', value: count((k) => k.step < 1), unit: 'runs', goal: null },
    ],
    [
      `${values.algorithm} in the tiny world, ${values.steps} steps; moments over the whole life of the process, drawn with seed ${values.seed}`,
    ],
  );
  return kills.every((kill) => kill.sameAdapter && kill.sameFigures && kill.exitCode === 0) ? 0 : 1;
}

function commandLine(
  place: TinyPlace,
  values: Readonly<Record<'algorithm' | 'steps' | 'threads' | 'folder', string>>,
): string[] {
  const data = join(values.folder, 'questions.jsonl');
  const questions = (['training', 'held-out'] as const).flatMap((part) => worldQuestions(place.world, part));
  const lines = questions.map(({ id, dataset, question, goldenAnswers }) =>
    JSON.stringify({ id, dataset, question, golden_answers: goldenAnswers }),
  );
  writeFileSync(data, `${lines.join('\n')}\n`);
  const settings = {
    ...TINY_SETTINGS,
    ...TINY_TRAINING,
    'paths.home': place.home,
    'retrieval.index': place.indexes.training,
    'training.steps': Number(values.steps),
    'training.batchSequences': 20,
    'training.miniBatchSequences': 20,
    'training.rolloutSequences': 20,
    'training.groupSize': 5,
    'training.validateEvery': 2,
    'training.validationQuestions': 10,
    'training.checkpointEvery': 2,
    'training.threads': Number(values.threads),
    'engine.threads': Number(values.threads),
  };
  return [SEARCHLOOP, 'train', values.algorithm, ...sets(settings), '--data', data, '--resume', '--output'];
}

/** @param killAfterMs  kill -9 then; absent: it may end */
async function trainingProcess(
  { command }: Bench,
  output: string,
  killAfterMs?: number,
): Promise<{ readonly exitCode: number | null; readonly killed: boolean; readonly errors: string }> {
  const child = spawn(process.execPath, [...command, output], { stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-2000);
  });
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  if (killAfterMs !== undefined) {
    await Promise.race([sleep(killAfterMs), ended]);
    child.kill('SIGKILL');
  }
  const { code, signal } = await ended;
  return { exitCode: code, killed: signal === 'SIGKILL', errors };
}

function undisturbedRun(bench: Bench): Promise<Ending & { readonly seconds: number }> {
  return keptOr(join(bench.folder, 'undisturbed.json'), async () => {
    const output = join(bench.folder, 'undisturbed');
    rmSync(output, { recursive: true, force: true });
    const begin = performance.now();
    const { exitCode, errors } = await trainingProcess(bench, output);
    const seconds = (performance.now() - begin) / 1000;
    if (exitCode !== 0) throw new Error(`the undisturbed run ended with ${exitCode}: ${errors}`);
    return { ...(await endingOf(output)), seconds };
  });
}

async function killAndResume(
  bench: Bench,
  number: number,
  draws: readonly number[],
  undisturbed: Ending & { readonly seconds: number },
): Promise<Kill> {
  const output = join(bench.folder, `run-${number}`);
  let latest = undisturbed.seconds;
  for (const draw of draws) {
    rmSync(output, { recursive: true, force: true });
    const afterSeconds = draw * latest;
    const begin = performance.now();
    const { killed } = await trainingProcess(bench, output, afterSeconds * 1000);
    // It was faster than the undisturbed one.
    latest = Math.min(latest, (performance.now() - begin) / 1000);
    if (!killed) continue;
    const step = lastStep(output);
    const { exitCode, errors } = await trainingProcess(bench, output);
    if (exitCode !== 0) {
      note(errors);
      return { afterSeconds, step, sameAdapter: false, sameFigures: false, exitCode: exitCode ?? -1 };
    }
    const { adapter, figures } = await endingOf(output);
    const sameAdapter = adapter === undisturbed.adapter;
    const sameFigures = figures === undisturbed.figures;
    // What differs is left to be looked at.
    if (sameAdapter && sameFigures) rmSync(output, { recursive: true });
    return { afterSeconds, step, sameAdapter, sameFigures, exitCode };
  }
  throw new Error(`run ${number} ended before it could be killed, ${draws.length} times`);
}

function lastStep(output: string): number {
  const folder = join(output, 'checkpoints');
  const steps = existsSync(folder)
    ? readdirSync(folder).flatMap((name) => /^step-(\d+)$/.exec(name)?.[1] ?? [])
    : [];
  return Math.max(-1, ...steps.map(Number));
}

const TIMES = ['seconds', 'rolloutSeconds', 'time'];

async function endingOf(output: string): Promise<Ending> {
  const rows = [
    ...(await readMetrics(join(output, 'metrics.jsonl'))),
    ...(await readMetrics(join(output, 'validation.jsonl'))),
  ].map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !TIMES.includes(name))));
  return {
    adapter: await sha256File(join(output, 'adapter', 'adapter_model.safetensors')),
    figures: sha256Hex(canonicalJson(rows)),
  };
}

async function keptOr<Result>(file: string, make: () => Promise<Result>): Promise<Result> {
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Result;
  const made = await make();
  writeFileSync(file, JSON.stringify(made));
  return made;
}
