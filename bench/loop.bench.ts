// The whole loop, as users see it: a server as a process of its own over the tiny world, people who ask without end by plain
// requests, streams and sockets, and others who say some time later what would have been right. Goes on where it was stopped.
//
//   npm run bench -- loop [--minutes 40] [--folder bench/results/loop] [--short] [--report]

import { mkdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { LoopStatus } from '#searchloop/loop/index.js';
import { createTokenizer } from '#searchloop/tokenizer/index.js';
import { interrupted } from './interrupt.js';
import { live, readStretches, type Stretch } from './loop/episode.js';
import { rightAnswer } from './loop/labels.js';
import { type LoopPlace, openLoopPlace, openWorld } from './loop/place.js';
import { markdownTable, writeReport } from './loop/report.js';
import { mixedRecords, type PublishedVersion, publishedVersions } from './loop/versions.js';
import { type Figure, median, note, printReport, resultsFolder } from './report.js';

/** Goals of the learning: exact match on questions that neither training nor gate has seen. */
const START = 0.3;
const END = 0.75;
const SWAPS = 10;
const STALL_STEPS = 2;

export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string' },
      folder: { type: 'string' },
      /** A few minutes, to see that everything works; its figures prove nothing. */
      short: { type: 'boolean', default: false },
      report: { type: 'boolean', default: false },
    },
  });
  const name = values.short ? 'loop-short' : 'loop';
  const folder = values.folder ?? resultsFolder(name);
  const minutes = Number(values.minutes ?? (values.short ? 6 : 40));
  mkdirSync(folder, { recursive: true });
  const signal = interrupted();
  const settings = {
    // Users leave no pause: beside them the loop has a quarter of the slots.
    'loop.patienceMs': 500,
    // Many versions between the first and the best: one that is only as good passes a few times at most.
    'loop.gateEvery': 2,
    'loop.maxKl': 2,
    'loop.guardMaxKl': 1,
  };
  // Two confirmations take 600 fresh questions, and one that is refused takes 300 more.
  const place = await openLoopPlace(await openWorld(folder), folder, settings, { setAside: 2 / 3 });
  if (!values.report)
    await live(place, {
      labelling: {
        say: (question) => rightAnswer(question),
        delayMs: values.short ? [200, 2000] : [1000, 20_000],
      },
      ways: ['plain', 'sse', 'socket', 'sse'],
      pauseMs: 300,
      pulse: { streams: 2, hidden: await hiddenTokens(place) },
      seed: 1,
      isOver: (status, spent) => whyOver(status, spent, minutes),
      onNote: note,
      signal,
    });
  const stretches = readStretches(folder);
  const versions = await publishedVersions(place);
  const stored = await mixedRecords(place);
  process.stdout.write(`${markdownTable(versions, stretches)}\n`);
  await writeReport(folder, versions, stretches, { intoDocs: !values.short });
  printReport('loop', figuresOf(versions, stretches, stored), notesOf(stretches));
  return 0;
}

/** Tags of the protocol, and control tokens. */
async function hiddenTokens({ tiny }: LoopPlace): Promise<number[]> {
  const tokenizer = createTokenizer(await tiny.model.readTokenizer());
  const tags = ['think', 'search', 'information', 'answer'].flatMap((name) => [`<${name}>`, `</${name}>`]);
  return [...tokenizer.specialIds, ...tags.flatMap((tag) => tokenizer.encodePlain(tag))];
}

function whyOver(status: LoopStatus, spent: number, minutes: number): string | null {
  if (status.state === 'paused') return `paused: ${status.paused_for}`;
  const needsQuestions = status.last_gate?.verdict === 'waits' && status.waits_for !== null;
  if (needsQuestions) return `the gate has no more questions: ${status.waits_for}`;
  return spent >= minutes ? `${minutes} minutes` : null;
}

function figuresOf(
  versions: readonly PublishedVersion[],
  stretches: readonly Stretch[],
  stored: { readonly records: number; readonly mixed: number },
): Figure[] {
  const sum = (value: (stretch: Stretch) => number): number =>
    stretches.reduce((total, stretch) => total + value(stretch), 0);
  const answers = sum(({ answers: { plain, sse, socket } }) => plain + sse + socket);
  const stalls = stretches.flatMap(({ stalls: { atSwaps } }) => atSwaps);
  const elsewhere = stretches.flatMap(({ stalls }) => stalls.elsewhere);
  const match = versions.map(({ exactMatch }) => exactMatch);
  return [
    { name: 'exact match of the start', value: match[0] ?? Number.NaN, unit: 'EM', goal: { most: START } },
    {
      name: 'exact match of the last version',
      value: match.at(-1) ?? Number.NaN,
      unit: 'EM',
      goal: { least: END },
    },
    {
      name: 'largest fall from one version to the next',
      value: Math.max(0, ...match.slice(1).map((value, at) => (match[at] as number) - value)),
      unit: 'EM',
      goal: null,
    },
    { name: 'swaps', value: versions.length - 1, unit: 'versions', goal: { least: SWAPS } },
    { name: 'answers', value: answers, unit: 'requests', goal: null },
    {
      name: 'failed requests',
      value: sum(({ failures }) => failures.length),
      unit: 'requests',
      goal: { most: 0 },
    },
    {
      name: 'answers of two versions, as clients see them',
      value: sum(({ mixed }) => mixed),
      unit: 'requests',
      goal: { most: 0 },
    },
    { name: 'records of two versions', value: stored.mixed, unit: 'records', goal: { most: 0 } },
    { name: 'stored answers', value: stored.records, unit: 'records', goal: null },
    { name: 'labels', value: sum(({ labels }) => labels.sent), unit: 'requests', goal: null },
    {
      name: 'longest stall of a stream at a swap',
      value: Math.max(...stalls),
      unit: 'decode steps',
      goal: { most: STALL_STEPS },
    },
    {
      name: 'longest stall in windows without a swap',
      value: Math.max(...elsewhere),
      unit: 'decode steps',
      goal: null,
    },
    {
      name: 'median of the longest stalls, at swaps',
      value: median(stalls),
      unit: 'decode steps',
      goal: null,
    },
    {
      name: 'median of the longest stalls, without a swap',
      value: median(elsewhere),
      unit: 'decode steps',
      goal: null,
    },
    { name: 'swaps with streams on', value: stalls.length, unit: 'swaps', goal: { least: SWAPS } },
    { name: 'time', value: sum(({ minutes }) => minutes), unit: 'minutes', goal: null },
  ];
}

const notesOf = (stretches: readonly Stretch[]): string[] => [
  ...new Set(stretches.flatMap(({ failures }) => failures).slice(0, 10)),
  ...stretches.map(
    ({ over, stalls }) =>
      `ended: ${over}; ${stalls.atSwaps.length === 0 ? 'no stream ran through a swap' : `a decode step took ${stalls.stepMs.toFixed(1)} ms`}`,
  ),
];
