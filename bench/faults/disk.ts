// A server on a disk that misbehaves, with clients who go on asking: one case a fault. Each begins with a time in which all
// is well, and ends with a kill -9 and a power cut after which everything acknowledged must be there.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Acknowledged } from './acknowledged.js';
import { auditStore, checkStore, storeFile } from './check.js';
import { Load, type SeenAnswer } from './clients.js';
import { CASES, type DiskCase, HELD_MS } from './disk-cases.js';
import type { House } from './houses.js';
import { randomOf } from './kills.js';
import { createFaultLayer } from './layer/fault-layer.js';
import { monotonicNow } from './monotonic.js';
import { readiness, startServer } from './server-process.js';
import { until } from './until.js';

export interface CaseResult {
  readonly name: string;
  /** Answers that began while the fault held. */
  readonly answered: number;
  /** Of those, said to be stored. */
  readonly storedMeanwhile: number;
  /** Readiness was degraded while the fault held. */
  readonly degraded: boolean;
  /** It should have been, and was not. */
  readonly silent: boolean;
  /** From the fault's end to `ready`; null: it never came. */
  readonly recoveryMs: number | null;
  /** Answers of the whole case, acknowledged or not, that are not in the store at the end. */
  readonly missing: number;
  readonly failures: readonly string[];
  /** Of those, while the fault held, where it ends answers. */
  readonly broken: number;
  /** Feedback that was told to come again. */
  readonly feedbackPutOff: number;
  readonly lost: number;
  readonly faults: readonly string[];
  /** Longest delay of the server's event loop before the fault and while it held. */
  readonly delayBeforeMs: number;
  readonly delayMs: number;
  /** Longest pause within a stream, and from the last token to the end, likewise. */
  readonly gapBeforeMs: number;
  readonly gapMs: number;
  readonly endMs: number;
}

const MOST_HELD_MS = 20_000;
const LEAST_ANSWERS = 5;

export interface DiskOptions {
  readonly house: House;
  readonly folder: string;
  readonly note: (line: string) => void;
  /** Only cases whose name holds one of these texts. */
  readonly only: readonly string[];
}

export async function diskCases(options: DiskOptions): Promise<CaseResult[]> {
  const results: CaseResult[] = [];
  for (const [number, disk] of CASES.entries()) {
    if (!options.only.some((text) => disk.name.includes(text))) continue;
    const result = await runCase(disk, number, options).catch(
      (error: Error): CaseResult => ({ ...NOTHING, name: disk.name, faults: [error.message] }),
    );
    results.push(result);
    options.note(
      `the disk: ${result.name}: ${result.answered} answers meanwhile, ${result.storedMeanwhile} of them stored, ${result.degraded ? 'degraded' : 'not degraded'}, ready again after ${result.recoveryMs === null ? 'never' : `${Math.round(result.recoveryMs)} ms`}, event loop held for ${result.delayMs.toFixed(0)} ms (${result.delayBeforeMs.toFixed(0)} before)${[...(result.broken > 0 ? [] : result.failures), ...result.faults].map((text) => `\n  FAULT: ${text}`).join('')}`,
    );
  }
  return results;
}

const NOTHING = {
  answered: 0,
  storedMeanwhile: 0,
  degraded: false,
  silent: false,
  recoveryMs: null,
  missing: 0,
  failures: [],
  broken: 0,
  feedbackPutOff: 0,
  lost: 0,
  delayBeforeMs: 0,
  delayMs: 0,
  gapBeforeMs: 0,
  gapMs: 0,
  endMs: 0,
} as const;

const WELL_MS = 3000;
/** By then what was answered last is written. */
const SETTLED_MS = 500;
const RECOVERY_MS = 30_000;

async function runCase(disk: DiskCase, number: number, options: DiskOptions): Promise<CaseResult> {
  const { house } = options;
  const folder = join(options.folder, `case-${number}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const layer = createFaultLayer(folder);
  const data = join(layer.folder, 'data');
  const acknowledged = Acknowledged.read(null);
  // The time that users are promised, not that of the kills.
  const flags = house.flags(data, {
    ...(disk.learns === true ? house.loopFlags : {}),
    'store.commitTimeoutMs': 250,
  });
  const server = startServer({ flags, environment: layer.environment, folder });
  try {
    const url = await server.ready;
    const load = new Load({ url, house, acknowledged, random: randomOf(number) });
    await until(() => load.seen.length > 10, RECOVERY_MS);
    const well = monotonicNow();
    await sleep(WELL_MS);
    const watch = watchReadiness(url);
    const begun = monotonicNow();
    const holdOn = async (): Promise<void> => {
      const since = monotonicNow();
      await sleep(HELD_MS);
      const came = (): number => load.seen.filter((answer) => answer.begun >= since).length;
      await until(() => came() >= LEAST_ANSWERS, MOST_HELD_MS);
    };
    const failedBefore = load.failures.length;
    const wrong = await disk.act({ layer, server, url, data, held: holdOn });
    const ended = monotonicNow();
    const recovered = await until(async () => (await readiness(url)).status === 'ready', RECOVERY_MS);
    const recoveryMs = monotonicNow() - ended;
    const degraded = await watch.end();
    const broken = disk.breaksAnswers === true ? load.failures.length - failedBefore : 0;
    await sleep(SETTLED_MS);
    await load.end();
    await until(async () => (await readiness(url)).status === 'ready', RECOVERY_MS);
    await sleep(SETTLED_MS);
    const held: Held = {
      begun,
      ended,
      degraded,
      recoveryMs: recovered ? recoveryMs : null,
      broken,
      delayBeforeMs: server.longestDelayMs(well, begun),
      delayMs: server.longestDelayMs(begun, ended),
    };
    await server.kill();
    // What a kill leaves in the system's memory is no proof that it was on the disk.
    layer.cutPower();
    const found = checkStore(storeFile(data), acknowledged);
    const failed = await auditStore(storeFile(data), house.auditor, 2 * 86_400_000);
    return { ...resultOf(disk, load, held, found), faults: [...wrong, ...found.faults, ...failed] };
  } finally {
    layer.set('none');
    await server.kill();
  }
}

/** What was seen while the fault held. Times are those of `monotonicNow`. */
interface Held extends Pick<CaseResult, 'degraded' | 'recoveryMs' | 'broken' | 'delayBeforeMs' | 'delayMs'> {
  readonly begun: number;
  readonly ended: number;
}

function resultOf(
  disk: DiskCase,
  { seen, failures, feedbackPutOff }: Load,
  { begun, ended, ...held }: Held,
  found: ReturnType<typeof checkStore>,
): Omit<CaseResult, 'faults'> {
  const during = seen.filter((answer) => answer.begun >= begun && answer.begun < ended);
  const before = seen.filter((answer) => answer.ended < begun);
  return {
    ...held,
    name: disk.name,
    answered: during.length,
    storedMeanwhile: during.filter(({ stored }) => stored).length,
    silent: disk.degrades && !held.degraded,
    missing: seen.filter(({ id }) => !found.answers.has(id)).length,
    failures,
    feedbackPutOff,
    lost: found.lostAnswers.length + found.lostFeedback.length,
    gapBeforeMs: longest(before, ({ longestGapMs }) => longestGapMs),
    gapMs: longest(during, ({ longestGapMs }) => longestGapMs),
    endMs: longest(during, ({ endMs }) => endMs),
  };
}

const longest = (answers: readonly SeenAnswer[], value: (answer: SeenAnswer) => number): number =>
  Math.max(0, ...answers.map(value));

function watchReadiness(url: string): { end(): Promise<boolean> } {
  let going = true;
  let degraded = false;
  const watching = (async () => {
    while (going) {
      const status = await readiness(url).catch(() => null);
      degraded ||= status?.status === 'degraded';
      await sleep(30);
    }
  })();
  return {
    async end() {
      going = false;
      await watching;
      return degraded;
    },
  };
}
