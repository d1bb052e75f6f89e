// Learning to search in the tiny world: every algorithm, seed and ablation, with a table and curves in docs/learning.md.
// A bench that was stopped goes on where it was; finished runs are not run again.
//
//   npm run bench -- learning [--seeds 3] [--only grpo,ppo] [--folder bench/results/learning] [--report]
//                             [--parallel N] [--threads 1]
//   npm run bench -- learning --warm-start     makes the warm start in models/tiny-world again

import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readMetrics } from '#searchloop/training/index.js';
import { canonicalJson, sha256Hex } from '#searchloop/util/digest.js';
import { eachOf } from '#searchloop/util/side-by-side.js';
import { curveMean, markdownTable, startOf, writeReport } from './learning/report.js';
import { keepResult, type RunResult, readResult } from './learning/results.js';
import { LEARNERS, VARIANTS, type Variant } from './learning/variants.js';
import { type Figure, note, printReport, resultsFolder } from './report.js';
import { openTinyPlace, type TinyPlace, tinyModelFolder } from './tiny-world/house.js';
import { runTiny, TINY_TRAINING } from './tiny-world/run.js';
import { makeTinyWarmStart } from './tiny-world/warm-start.js';
import { createWorld } from './tiny-world/world.js';

const CURVE_QUESTIONS = 100;
const FINAL_QUESTIONS = 400;
const MOST_MINUTES_A_RUN = 6;
const MOST_MINUTES = 150;

export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      seeds: { type: 'string', default: '3' },
      only: { type: 'string' },
      folder: { type: 'string', default: resultsFolder('learning') },
      // A second thread makes a run of so small a model no faster; a second run beside it costs it little.
      threads: { type: 'string', default: '1' },
      parallel: { type: 'string', default: String(availableParallelism()) },
      report: { type: 'boolean', default: false },
      'warm-start': { type: 'boolean', default: false },
    },
  });
  const { folder } = values;
  const threads = Number(values.threads);
  if (values['warm-start']) {
    await warmStart(join(folder, 'warm-start'), threads);
    return 0;
  }
  const place = await openTinyPlace(folder);
  const chosen = VARIANTS.filter(({ name }) => values.only?.split(',').includes(name) ?? true);
  // All variants of the first seed come first: a table of some seeds is there early.
  const atOnce = Math.max(1, Number(values.parallel));
  const jobs = Array.from({ length: Number(values.seeds) }, (_, index) => index + 1)
    .flatMap((seed) =>
      chosen.map((variant) => ({ variant, seed, digest: digestOf(place, variant, seed), threads, atOnce })),
    )
    .map((job) => ({ ...job, found: readResult(folder, job.variant.name, job.seed, job.digest) }));
  const wanted = jobs.filter(({ found }) => found !== null || !values.report);
  const results: RunResult[] = [];
  await eachOf(wanted, atOnce, async ({ found, ...job }, at) => {
    results[at] = found ?? (await runOne(place, folder, job));
  });
  if (values.only === undefined) await writeReport(results);
  process.stdout.write(`${markdownTable(results)}\n`);
  printReport('learning', figuresOf(results));
  return 0;
}

async function warmStart(work: string, threads: number): Promise<void> {
  await makeTinyWarmStart({
    world: createWorld(),
    work,
    output: tinyModelFolder(),
    threads,
    onNote: note,
    onStep: ({ step, metrics }, steps) => {
      if (step % 25 === 0 || step === steps)
        note(`step ${step} of ${steps}: loss ${metrics.loss?.toFixed(4)}`);
    },
  });
}

function digestOf({ model }: TinyPlace, variant: Variant, seed: number): string {
  const { about: _, ...settings } = variant;
  const shared = { training: TINY_TRAINING, CURVE_QUESTIONS, FINAL_QUESTIONS, model: model.record.digest };
  return sha256Hex(canonicalJson({ settings, seed, ...shared }));
}

interface Job {
  readonly variant: Variant;
  readonly seed: number;
  readonly digest: string;
  readonly threads: number;
  readonly atOnce: number;
}

async function runOne(place: TinyPlace, folder: string, job: Job): Promise<RunResult> {
  const { variant, seed, digest, threads, atOnce } = job;
  const name = `${variant.name}-seed-${seed}`;
  const runFolder = join(folder, 'runs', `${name}-${digest.slice(0, 8)}`);
  const { algorithm, groupSize, topK, masked, training } = variant;
  note(`${name}: ${variant.about}`);
  const outcome = await runTiny({
    place,
    folder: runFolder,
    algorithm,
    seed,
    groupSize,
    topK,
    masked,
    ...(training === undefined ? {} : { training }),
    curveQuestions: CURVE_QUESTIONS,
    finalQuestions: FINAL_QUESTIONS,
    threads,
    onCurve: ({ step, exactMatch, oneHop, twoHop, twoHopSearches }) =>
      note(
        `${name}, step ${step}: EM ${exactMatch.toFixed(3)} (one step ${oneHop.toFixed(2)}, two ${twoHop.toFixed(2)} with ${twoHopSearches.toFixed(2)} searches)`,
      ),
  });
  const rows = await readMetrics(join(runFolder, 'metrics.jsonl'));
  const learning = rows.reduce((sum, row) => sum + (row.seconds ?? 0) + (row.rolloutSeconds ?? 0), 0);
  const evaluating = outcome.curve.reduce((sum, { seconds }) => sum + seconds, 0);
  const { curve, final, emptyIndex, version } = outcome;
  const minutes = (learning + evaluating + final.seconds + emptyIndex.seconds) / 60;
  const result = { variant: variant.name, seed, settingsDigest: digest, minutes, atOnce };
  const whole: RunResult = { ...result, curve, final, emptyIndex, version, rows };
  await keepResult(folder, whole);
  note(
    `${name}: EM ${final.exactMatch.toFixed(3)}, empty index ${emptyIndex.exactMatch.toFixed(3)}, ${minutes.toFixed(1)} minutes`,
  );
  return whole;
}

function figuresOf(results: readonly RunResult[]): Figure[] {
  const least = (values: readonly number[]): number => Math.min(...values);
  const most = (values: readonly number[]): number => Math.max(...values);
  const of = (name: string): RunResult[] => results.filter(({ variant }) => variant === name);
  const learners = LEARNERS.filter((name) => of(name).length > 0);
  const alone = results.filter(({ atOnce }) => atOnce === 1);
  const pairs = of('grpo-unmasked').flatMap((open) => {
    const masked = of('grpo').find(({ seed }) => seed === open.seed);
    return masked === undefined ? [] : [{ masked, open }];
  });
  return [
    ...learners.flatMap((name): Figure[] => [
      {
        name: `${name}: EM at the start, most`,
        value: most(of(name).map(startOf)),
        unit: 'EM',
        goal: { most: 0.3 },
      },
      {
        name: `${name}: EM at the end, least`,
        value: least(of(name).map(({ final }) => final.exactMatch)),
        unit: 'EM',
        goal: { least: 0.8 },
      },
      {
        name: `${name}: searches for two steps, least`,
        value: least(of(name).map(({ final }) => final.twoHopSearches)),
        unit: 'searches',
        goal: { least: 1.9 },
      },
      {
        name: `${name}: searches for two steps, most`,
        value: most(of(name).map(({ final }) => final.twoHopSearches)),
        unit: 'searches',
        goal: { most: 2.2 },
      },
      {
        name: `${name}: EM with an empty index, most`,
        value: most(of(name).map(({ emptyIndex }) => emptyIndex.exactMatch)),
        unit: 'EM',
        goal: { most: 0.05 },
      },
    ]),
    ...pairs.flatMap(({ masked, open }): Figure[] => [
      {
        name: `mask, seed ${open.seed}: EM at the end gained`,
        value: masked.final.exactMatch - open.final.exactMatch,
        unit: 'EM',
        goal: { least: 0 },
      },
      {
        name: `mask, seed ${open.seed}: mean over the curve gained`,
        value: curveMean(masked) - curveMean(open),
        unit: 'EM',
        goal: { least: 0 },
      },
    ]),
    ...(alone.length === 0
      ? []
      : [
          {
            name: 'longest run that had the machine to itself',
            value: most(alone.map(({ minutes }) => minutes)),
            unit: 'minutes',
            goal: { most: MOST_MINUTES_A_RUN },
          },
        ]),
    {
      name: 'all runs',
      value: results.reduce((sum, { minutes, atOnce }) => sum + minutes / atOnce, 0),
      unit: 'minutes',
      goal: { most: MOST_MINUTES },
    },
  ];
}
