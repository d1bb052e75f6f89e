// What was said to be stored is never lost, and answers go on whatever the disk does. The real server, real clients.
//
//   npm run bench -- faults [--tiny 180] [--real 20] [--power 12] [--only kills,disk,power]
//     [--cases full,locked] [--folder FOLDER] [--fresh]
//
// Kills go on where a bench that was stopped was.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type CaseResult, diskCases } from './faults/disk.js';
import { benchFolder, type House, realHouse, tinyHouse } from './faults/houses.js';
import { type KillResult, killAgainAndAgain } from './faults/kills.js';
import { type PowerResult, powerCuts } from './faults/power.js';
import { type Figure, median, printReport } from './report.js';

export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      tiny: { type: 'string', default: '180' },
      real: { type: 'string', default: '20' },
      power: { type: 'string', default: '12' },
      only: { type: 'string', default: 'kills,disk,power' },
      cases: { type: 'string', default: '' },
      folder: { type: 'string', default: benchFolder() },
      fresh: { type: 'boolean', default: false },
    },
  });
  const begun = performance.now();
  // A bench that was stopped took time before.
  let earlier = 0;
  const timed = (found: { figures: Figure[]; seconds: number }): Figure[] => {
    earlier += found.seconds;
    return found.figures;
  };
  const note = (line: string): void => {
    const minutes = ((performance.now() - begun) / 60_000).toFixed(1);
    process.stderr.write(`[${minutes} min] ${line}\n`);
  };
  const { folder } = values;
  if (values.fresh) rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const parts = values.only.split(',');
  const figures: Figure[] = [];
  const tiny = await tinyHouse(folder);
  if (parts.includes('kills')) {
    figures.push(...timed(await kills(tiny, Number(values.tiny), folder, note)));
    if (Number(values.real) > 0)
      figures.push(...timed(await kills(await realHouse(folder), Number(values.real), folder, note)));
  }
  if (parts.includes('disk')) {
    const only = values.cases.split(',');
    const cases = await diskCases({ house: tiny, folder: join(folder, 'disk'), note, only });
    figures.push(...cases.flatMap(figuresOfCase));
  }
  if (parts.includes('power')) {
    const cuts = Number(values.power);
    figures.push(
      ...figuresOfPower(await powerCuts({ house: tiny, cuts, folder: join(folder, 'power'), note })),
    );
  }
  figures.push({
    name: 'all of it',
    value: (performance.now() - begun) / 60_000 + earlier / 60,
    unit: 'min',
    goal: { most: 45 },
  });
  printReport('faults', figures);
  return 0;
}

async function kills(
  house: House,
  count: number,
  folder: string,
  note: (line: string) => void,
): Promise<{ figures: Figure[]; seconds: number }> {
  if (count === 0) return { figures: [], seconds: 0 };
  const own = join(folder, house.name, 'kills');
  mkdirSync(own, { recursive: true });
  const begun = performance.now();
  const results = await killAgainAndAgain({ house, count, folder: own, note });
  const killed = results.filter(({ during }) => during !== 'end' && during !== 'start');
  const sum = (value: (result: KillResult) => number): number =>
    results.reduce((total, result) => total + value(result), 0);
  const starts = results.flatMap(({ startMs }) => (startMs === null ? [] : [startMs]));
  const last = results.at(-1)!;
  const name = (text: string): string => `${house.name}: ${text}`;
  const none = { most: 0 };
  const during = (state: string): number => results.filter((result) => result.during === state).length;
  const others = [...new Set(results.map((result) => result.during))].filter(
    (state) => state !== 'end' && !house.phases.includes(state),
  );
  const figures: Figure[] = [
    { name: name('kills under load'), value: killed.length, unit: 'kills', goal: { least: count } },
    ...house.phases.map((state) => ({
      name: name(`kills during ${state}`),
      value: during(state),
      unit: 'kills',
      goal: { least: 1 },
    })),
    ...others.map((state) => ({
      name: name(`kills during ${state}`),
      value: during(state),
      unit: 'kills',
      goal: null,
    })),
    { name: name('answers acknowledged'), value: last.answers, unit: 'answers', goal: { least: 1 } },
    { name: name('of them lost'), value: sum(({ lostAnswers }) => lostAnswers), unit: 'answers', goal: none },
    { name: name('feedback acknowledged'), value: last.feedback, unit: 'entries', goal: { least: 1 } },
    { name: name('of it lost'), value: sum(({ lostFeedback }) => lostFeedback), unit: 'entries', goal: none },
    { name: name('other faults'), value: sum(({ faults }) => faults.length), unit: 'faults', goal: none },
    {
      name: name('steps of the loop'),
      value: Math.max(0, ...results.map(({ seen }) => seen?.step ?? 0)),
      unit: 'steps',
      goal: { least: 1 },
    },
    {
      name: name('published by the loop'),
      value: Math.max(0, ...results.map(({ seen }) => seen?.counts.published ?? 0)),
      unit: 'versions',
      goal: house.phases.includes('publishing') ? { least: 1 } : null,
    },
    { name: name('start after a kill, median'), value: median(starts), unit: 'ms', goal: null },
    { name: name('start after a kill, longest'), value: Math.max(...starts), unit: 'ms', goal: null },
  ];
  const took = results.reduce((sum, { seconds }) => sum + seconds, 0);
  return { figures, seconds: took - (performance.now() - begun) / 1000 };
}

/** Longest delay of the event loop that a fault of the disk may cause. */
const MOST_DELAY_MS = 20;
/** What the end of an answer may wait for the store, and what a busy machine adds. */
const MOST_END_MS = 250 + 100;

function figuresOfCase(result: CaseResult): Figure[] {
  const name = (text: string): string => `${result.name}: ${text}`;
  const none = { most: 0 };
  const figure = (text: string, value: number, unit: string, goal: Figure['goal']): Figure => ({
    name: name(text),
    value,
    unit,
    goal,
  });
  return [
    figure('answers meanwhile', result.answered, 'answers', { least: 1 }),
    figure('of them said to be stored', result.storedMeanwhile, 'answers', null),
    figure('requests failed', result.failures.length - result.broken, 'requests', none),
    ...(result.broken === 0
      ? []
      : [figure('answers that the fault broke off', result.broken, 'requests', null)]),
    figure('feedback told to come again', result.feedbackPutOff, 'entries', null),
    figure('acknowledged and lost', result.lost, 'records', none),
    figure('answers that are not in the store at the end', result.missing, 'answers', none),
    figure('other faults', result.faults.length, 'faults', none),
    figure('degraded was not told', result.silent ? 1 : 0, 'cases', none),
    figure('ready again after', result.recoveryMs ?? Number.POSITIVE_INFINITY, 'ms', { most: 10_000 }),
    figure('event loop held, before', result.delayBeforeMs, 'ms', null),
    figure('event loop held', result.delayMs, 'ms', { most: MOST_DELAY_MS }),
    figure('longest gap in a stream, before', result.gapBeforeMs, 'ms', null),
    figure('longest gap in a stream', result.gapMs, 'ms', null),
    figure('from the last token to the end', result.endMs, 'ms', { most: MOST_END_MS }),
  ];
}

function figuresOfPower({ cuts, taken, answers, lost, steps, faults }: PowerResult): Figure[] {
  return [
    { name: 'power cuts', value: cuts, unit: 'cuts', goal: { least: 1 } },
    { name: 'power: writes taken back', value: taken, unit: 'writes', goal: { least: 1 } },
    { name: 'power: answers acknowledged', value: answers, unit: 'answers', goal: { least: 1 } },
    { name: 'power: acknowledged and lost', value: lost, unit: 'records', goal: { most: 0 } },
    { name: 'power: other faults', value: faults.length, unit: 'faults', goal: { most: 0 } },
    { name: 'power: steps of the loop', value: steps, unit: 'steps', goal: null },
  ];
}
