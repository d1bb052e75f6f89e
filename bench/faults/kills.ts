// kill -9 of the whole server at random moments under load, again and again on the same data.

import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { mulberry32 } from '../random.js';
import { Acknowledged } from './acknowledged.js';
import { auditStore, checkStore, storeFile } from './check.js';
import { loopFaults, type SeenLoop, seeLoop } from './check-loop.js';
import { Load, sendFeedback } from './clients.js';
import { auditOnCommandLine, type House } from './houses.js';
import { startServer } from './server-process.js';
import { until } from './until.js';

/** One start, what it found after the kill before, and its own kill. A line of a file: a bench that was stopped goes on. */
export interface KillResult {
  readonly round: number;
  readonly loop: boolean;
  /** What the loop was doing when the kill came; `start`: the server was starting; `end`: not killed, the last look. */
  readonly during: string;
  /** Acknowledged so far. */
  readonly answers: number;
  readonly feedback: number;
  /** The loop before the kill. */
  readonly seen: SeenLoop | null;
  /** Null where it was killed before it was ready. */
  readonly startMs: number | null;
  readonly lostAnswers: number;
  readonly lostFeedback: number;
  readonly faults: readonly string[];
  /** What the round took. */
  readonly seconds: number;
}

export interface KillOptions {
  readonly house: House;
  readonly count: number;
  readonly folder: string;
  readonly note: (line: string) => void;
}

/** Of six rounds in a row the loop runs in the last three. */
const hasLoop = (round: number): boolean => round % 6 >= 3;
/** Every so many rounds a kill comes while the server starts. Those do not count: nothing asks yet. */
const START_EVERY = 11;
const isStart = (round: number): boolean => round % START_EVERY === START_EVERY - 1;
/** Rounds with so many kills under load. */
const roundsOf = (count: number): number => count + Math.floor(count / (START_EVERY - 1));
const LONGEST_START_MS = { tiny: 2500, real: 8000 };
const LONGEST_LOAD_MS = { tiny: 2500, real: 6000 };
/** A moment without regard to what the loop does. */
const ANY = 'any';
/** The real model takes this long for the rollouts of a step beside its users. */
const PHASE_WAIT_MS = { tiny: 10_000, real: 40_000 };
/** Of each client between two questions while the loop runs, so that it comes to something before the kill. */
const PAUSE_MS = { tiny: 100, real: 2000 };
const FIRST_ANSWER_MS = 30_000;

interface Rounds extends KillOptions {
  readonly data: string;
  readonly acknowledged: Acknowledged;
}

export async function killAgainAndAgain(options: KillOptions): Promise<KillResult[]> {
  const { count, folder } = options;
  const data = join(folder, 'data');
  mkdirSync(data, { recursive: true });
  const file = join(folder, 'results.jsonl');
  const results = existsSync(file)
    ? readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as KillResult)
        .filter(({ during }) => during !== 'end')
    : [];
  const acknowledged = Acknowledged.read(join(folder, 'acknowledged.json'));
  const rounds = { ...options, data, acknowledged };
  for (let round = results.length; round <= roundsOf(count); round++) {
    const before = results.findLast(({ seen }) => seen !== null)?.seen ?? null;
    const begun = performance.now();
    const found =
      round < roundsOf(count) ? await oneRound(rounds, round, before) : await lastLook(rounds, before);
    const result = { ...found, seconds: (performance.now() - begun) / 1000 };
    results.push(result);
    appendFileSync(file, `${JSON.stringify(result)}\n`);
    await acknowledged.save();
    options.note(lineOf(options, result));
  }
  return results;
}

function lineOf({ house, count }: KillOptions, result: KillResult): string {
  const { round, during, startMs, answers, lostAnswers, lostFeedback, faults, seen } = result;
  const start = startMs === null ? '' : `, ready after ${Math.round(startMs)} ms`;
  const loop = seen === null ? '' : `, step ${seen.step}, ${seen.counts.published} published`;
  const lost =
    lostAnswers + lostFeedback === 0 ? '' : `, LOST ${lostAnswers} answers, ${lostFeedback} feedback`;
  return `${house.name} ${round + 1}/${roundsOf(count)}: killed during ${during}${start}, ${answers} answers${loop}${lost}${faults.map((fault) => `\n  FAULT: ${fault}`).join('')}`;
}

type Found = Omit<KillResult, 'seconds'>;

async function oneRound(rounds: Rounds, round: number, before: SeenLoop | null): Promise<Found> {
  const { house, data, folder, acknowledged, note } = rounds;
  const random = randomOf(round);
  const loop = hasLoop(round);
  const server = startServer({ flags: house.flags(data, loop ? house.loopFlags : {}), folder });
  try {
    if (isStart(round)) {
      await sleep(random() * LONGEST_START_MS[house.name]);
      return { ...NOTHING, ...acknowledgedSoFar(acknowledged), round, loop, during: 'start' };
    }
    const url = await server.ready;
    const found = await look(rounds, url, loop, before);
    const load = new Load({ url, house, acknowledged, random, pauseMs: loop ? PAUSE_MS[house.name] : 0 });
    const phases = [...house.phases, ANY];
    const phase = loop ? phases[Math.floor(random() * phases.length)]! : ANY;
    await until(() => load.seen.length > 0, FIRST_ANSWER_MS);
    if (phase !== ANY)
      await until(async () => (await seeLoop(url))?.state === phase, PHASE_WAIT_MS[house.name]);
    await sleep(phase === ANY ? 300 + random() * LONGEST_LOAD_MS[house.name] : random() * 200);
    const seen = loop ? await seeLoop(url) : null;
    load.expectKill();
    await server.kill();
    await load.end();
    for (const failure of load.failures.slice(0, 3)) note(`a request failed: ${failure}`);
    return {
      ...acknowledgedSoFar(acknowledged),
      ...found,
      round,
      loop,
      during: seen?.state ?? 'load',
      seen,
      startMs: server.startMs(),
    };
  } finally {
    await server.kill();
  }
}

const NOTHING = { seen: null, startMs: null, lostAnswers: 0, lostFeedback: 0, faults: [] } as const;

const acknowledgedSoFar = (acknowledged: Acknowledged) => ({
  answers: acknowledged.answers().length,
  feedback: acknowledged.feedback().filter(({ entry }) => entry !== null).length,
});

/** After the last kill: one more start, a clean end, and the audit as people run it. */
async function lastLook(rounds: Rounds, before: SeenLoop | null): Promise<Found> {
  const { house, data, folder, acknowledged, count, note } = rounds;
  const server = startServer({ flags: house.flags(data, house.loopFlags), folder });
  try {
    const found = await look(rounds, await server.ready, true, before);
    const code = await server.stop();
    const audited = auditOnCommandLine(house, data);
    note(`${house.name}: searchloop trajectories audit: ${audited.text.trim().split('\n')[0]}`);
    const faults = [
      ...found.faults,
      ...(code === 0 ? [] : [`a clean end had exit code ${code}`]),
      ...(audited.code === 0 ? [] : [`audit: ${audited.text}`]),
    ];
    const round = {
      round: roundsOf(count),
      loop: true,
      during: 'end',
      seen: null,
      startMs: server.startMs(),
    };
    return { ...acknowledgedSoFar(acknowledged), ...found, ...round, faults };
  } finally {
    await server.kill();
  }
}

/** Whether all is there, in a server that has just come up. */
async function look(
  { house, data, acknowledged }: Rounds,
  url: string,
  loop: boolean,
  before: SeenLoop | null,
): Promise<Pick<KillResult, 'lostAnswers' | 'lostFeedback' | 'faults'>> {
  const now = loop ? await seeLoop(url) : null;
  const file = storeFile(data);
  // The first server makes the tables when it gets to it.
  if (acknowledged.answers().length === 0) return NOTHING;
  const found = checkStore(file, acknowledged);
  const faults = [
    ...found.faults,
    ...(loop && now === null ? ['the loop did not start'] : []),
    ...(now === null ? [] : loopFaults(data, before, now)),
    ...(await sendAgain(url, acknowledged)),
    ...(await auditStore(file, house.auditor, LATELY_MS)),
  ];
  return { lostAnswers: found.lostAnswers.length, lostFeedback: found.lostFeedback.length, faults };
}

/** Records of so long ago have been audited by earlier rounds. */
const LATELY_MS = 120_000;

/** Feedback whose answer the kill took is sent again under its key, as a client would. */
async function sendAgain(url: string, acknowledged: Acknowledged): Promise<string[]> {
  const faults: string[] = [];
  for (const { key, answerId, body, entry } of acknowledged.feedback())
    if (entry === null)
      await sendFeedback(url, acknowledged, key, answerId, body).catch((error: Error) =>
        faults.push(`feedback sent again: ${error.message}`),
      );
  return faults;
}

/** The same numbers for the same round. */
export const randomOf = (round: number): (() => number) => mulberry32((round + 1) * 0x9e3779b9);
