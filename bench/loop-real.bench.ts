// The whole loop with the real policy: users ask questions of the training part over a real corpus and say some time later what
// would have been right; the server learns from it. Goes on where it was stopped, stretch by stretch.
//
//   npm run bench -- loop-real --data questions.jsonl --index FOLDER [--minutes 120] [--questions 300] [--folder bench/results/loop-real] [--report]

import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { packageRoot } from '#searchloop/config/index.js';
import type { Interval } from '#searchloop/evaluation/index.js';
import { interrupted } from './interrupt.js';
import { live, readStretches, type Stretch } from './loop/episode.js';
import { rightAnswer } from './loop/labels.js';
import { openRealPlace } from './loop/real-place.js';
import { type Measured, measureVersions } from './loop/real-versions.js';
import { putBetweenMarks } from './loop/report.js';
import { type Figure, note, printReport, resultsFolder } from './report.js';

/** What users ask in a stretch, all at its beginning: then the loop has the machine for itself. */
const QUESTIONS_A_STRETCH = 160;

/** For the end of a verdict. */
const MOST_MINUTES_MORE = 45;

export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      data: { type: 'string' },
      index: { type: 'string' },
      minutes: { type: 'string', default: '120' },
      questions: { type: 'string', default: '300' },
      folder: { type: 'string', default: resultsFolder('loop-real') },
      /** Measures what is there, and lives no further. */
      report: { type: 'boolean', default: false },
    },
  });
  const { data, index, folder } = values;
  if (data === undefined || index === undefined) {
    note('expected --data with questions and --index with the folder of an index');
    return 2;
  }
  mkdirSync(folder, { recursive: true });
  const signal = interrupted();
  const place = await openRealPlace({ folder, questionFile: resolve(data), index: resolve(index) });
  if (!values.report)
    await live(place, {
      labelling: { say: (question) => rightAnswer(question), delayMs: [1000, 60_000] },
      ways: ['plain', 'sse', 'socket', 'sse'],
      pauseMs: 500,
      questions: QUESTIONS_A_STRETCH,
      resumes: true,
      seed: 1,
      isOver: ({ state, paused_for }, minutes) => {
        if (state === 'paused') return `paused: ${paused_for}`;
        // Answers of a verdict that is broken off are asked again.
        const judges = state === 'gating' || state === 'publishing';
        const most = Number(values.minutes) + (judges ? MOST_MINUTES_MORE : 0);
        return minutes >= most ? `${minutes.toFixed(0)} minutes` : null;
      },
      onNote: note,
      signal,
    });
  const measured = await measureVersions(place, Number(values.questions), signal);
  const table = markdownTable(measured);
  process.stdout.write(`${table}\n`);
  await putBetweenMarks(join(packageRoot, 'docs', 'loop.md'), 'loop-real', table);
  printReport('loop-real', figuresOf(measured, readStretches(folder)));
  return 0;
}

const interval = ({ mean, low, high }: Interval): string =>
  `${mean.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;

function markdownTable({ versions }: Measured): string {
  const head = ['version', 'steps', 'EM (95 % interval)', 'less the version before', 'searches', 'answered'];
  const rows = versions.map(({ version, steps, exactMatch, gained, searches, answered }) => [
    version.slice(0, 8),
    String(steps),
    interval(exactMatch),
    gained === null ? '' : interval(gained),
    searches.toFixed(2),
    answered.toFixed(3),
  ]);
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function figuresOf({ versions, whole }: Measured, stretches: readonly Stretch[]): Figure[] {
  const sum = (value: (stretch: Stretch) => number): number =>
    stretches.reduce((total, stretch) => total + value(stretch), 0);
  const counts = stretches.at(-1)?.status.counts;
  const match = (at: number): number => versions.at(at)?.exactMatch.mean ?? Number.NaN;
  return [
    { name: 'exact match of the start', value: match(0), unit: 'EM', goal: null },
    { name: 'exact match of the last version', value: match(-1), unit: 'EM', goal: null },
    { name: 'last less first', value: whole?.mean ?? Number.NaN, unit: 'EM', goal: null },
    {
      name: 'lower end of its 95 % interval',
      value: whole?.low ?? Number.NaN,
      unit: 'EM',
      goal: { least: Number.MIN_VALUE },
    },
    {
      name: 'published versions significantly below the one before',
      value: versions.filter(({ gained }) => gained !== null && gained.high < 0).length,
      unit: 'versions',
      goal: { most: 0 },
    },
    { name: 'published', value: counts?.published ?? 0, unit: 'versions', goal: { least: 1 } },
    { name: 'refused', value: counts?.refused ?? 0, unit: 'versions', goal: null },
    { name: 'steps', value: stretches.at(-1)?.status.step ?? 0, unit: 'steps', goal: null },
    {
      name: 'answers',
      value: sum(({ answers: { plain, sse, socket } }) => plain + sse + socket),
      unit: 'requests',
      goal: null,
    },
    {
      name: 'failed requests',
      value: sum(({ failures }) => failures.length),
      unit: 'requests',
      goal: { most: 0 },
    },
    {
      name: 'answers of two versions',
      value: sum(({ mixed }) => mixed),
      unit: 'requests',
      goal: { most: 0 },
    },
    { name: 'time', value: sum(({ minutes }) => minutes), unit: 'minutes', goal: null },
  ];
}
