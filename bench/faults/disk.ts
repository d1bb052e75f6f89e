// A server on a disk that misbehaves, with clients who go on asking: one case a fault. Each begins with a time in which all
// is well, and ends with a kill -9 after which everything acknowledged must be there.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '#searchloop/storage/index.js';
import { Acknowledged } from './acknowledged.js';
import { auditStore, checkStore, storeFile } from './check.js';
import { Load, type SeenAnswer } from './clients.js';
import type { House } from './houses.js';
import { randomOf } from './kills.js';
import { createFaultLayer, type Fault, type FaultLayer } from './layer/fault-layer.js';
import { monotonicNow, readiness, type ServerProcess, startServer, until } from './server-process.js';

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
  /** Answers of the whole case, acknowledged or not, that are in the store at the end. */
  readonly kept: number;
  readonly asked: number;
  readonly failures: readonly string[];
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

interface Running {
  /** Resolves when the fault has stood for long enough: at least 2 s, and until some answers came meanwhile. */
  held(): Promise<void>;
  readonly layer: FaultLayer;
  readonly server: ServerProcess;
  readonly data: string;
}

interface DiskCase {
  readonly name: string;
  /** Nothing can be stored while it lasts: readiness must say so. Otherwise it may. */
  readonly degrades: boolean;
  /** Lets the fault begin, stand and end; resolves when the disk is well again. */
  act(running: Running): Promise<void>;
}

const HELD_MS = 2000;
const MOST_HELD_MS = 20_000;
const LEAST_ANSWERS = 5;

/** @param faults  one after the other */
const faults = (name: string, ...list: readonly (readonly Fault[])[]): DiskCase => ({
  name,
  degrades: true,
  async act({ layer, held }) {
    for (const some of list) {
      layer.set(...some);
      await held();
    }
    layer.set('none');
  },
});

const CASES: readonly DiskCase[] = [
  faults('stalls for 2 s, then is full', [`stall ${HELD_MS}`], ['full']),
  faults('full', ['full']),
  faults('read-only', ['readonly']),
  faults('syncs fail', ['unsynced']),
  {
    name: 'locked by another process',
    degrades: true,
    async act({ data, held }) {
      const other = openDatabase(storeFile(data));
      try {
        other.exec('begin immediate');
        await held();
        other.exec('rollback');
      } finally {
        other.close();
      }
    },
  },
  {
    name: "the store's thread is killed three times",
    degrades: false,
    async act({ server, held }) {
      for (let kills = 0; kills < 3; kills++) {
        server.killStoreThread();
        await held();
      }
    },
  },
  {
    name: 'the clock is set back by a day',
    degrades: false,
    async act({ layer, held }) {
      layer.set(`clock ${-86_400_000}`);
      await held();
      layer.set('none');
    },
  },
];

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
    const result = await runCase(disk, number, options);
    results.push(result);
    options.note(
      `the disk: ${result.name}: ${result.answered} answers meanwhile, ${result.storedMeanwhile} of them stored, ${result.degraded ? 'degraded' : 'not degraded'}, ready again after ${result.recoveryMs === null ? 'never' : `${Math.round(result.recoveryMs)} ms`}, event loop held for ${result.delayMs.toFixed(0)} ms (${result.delayBeforeMs.toFixed(0)} before)${[...result.failures, ...result.faults].map((text) => `\n  FAULT: ${text}`).join('')}`,
    );
  }
  return results;
}

const WELL_MS = 3000;
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
  const flags = house.flags(data, { 'store.commitTimeoutMs': 250 });
  const server = startServer({ flags, environment: layer.environment, folder });
  try {
    const url = await server.ready;
    const load = new Load({ url, house, acknowledged, random: randomOf(number) });
    await until(() => load.seen.length > 10, RECOVERY_MS);
    const well = monotonicNow();
    await sleep(WELL_MS);
    const watch = watchReadiness(url);
    const begun = monotonicNow();
    const held = async (): Promise<void> => {
      const since = monotonicNow();
      await sleep(HELD_MS);
      const came = (): number => load.seen.filter((answer) => answer.begun >= since).length;
      await until(() => came() >= LEAST_ANSWERS, MOST_HELD_MS);
    };
    await disk.act({ layer, server, data, held });
    const ended = monotonicNow();
    const recovered = await until(async () => (await readiness(url)).status === 'ready', RECOVERY_MS);
    const recoveryMs = monotonicNow() - ended;
    const degraded = await watch.end();
    await sleep(500);
    await load.end();
    await until(async () => (await readiness(url)).status === 'ready', RECOVERY_MS);
    const delays = {
      before: server.longestDelayMs(well, begun),
      during: server.longestDelayMs(begun, ended),
    };
    await server.kill();
    const found = checkStore(storeFile(data), acknowledged);
    const failed = await auditStore(storeFile(data), house.auditor, 2 * 86_400_000);
    const during = load.seen.filter((answer) => answer.begun >= begun && answer.begun < ended);
    const before = load.seen.filter((answer) => answer.ended < begun);
    return {
      name: disk.name,
      answered: during.length,
      storedMeanwhile: during.filter(({ stored }) => stored).length,
      degraded,
      recoveryMs: recovered ? recoveryMs : null,
      silent: disk.degrades && !degraded,
      kept: found.answers,
      asked: load.seen.length,
      failures: load.failures,
      lost: found.lostAnswers.length + found.lostFeedback.length,
      faults: [...found.faults, ...failed],
      delayBeforeMs: delays.before,
      delayMs: delays.during,
      gapBeforeMs: longest(before, ({ longestGapMs }) => longestGapMs),
      gapMs: longest(during, ({ longestGapMs }) => longestGapMs),
      endMs: longest(during, ({ endMs }) => endMs),
    };
  } finally {
    layer.set('none');
    await server.kill();
  }
}

const longest = (answers: readonly SeenAnswer[], value: (answer: SeenAnswer) => number): number =>
  Math.max(0, ...answers.map(value));

function watchReadiness(url: string): { end(): Promise<boolean> } {
  let going = true;
  let degraded = false;
  const watching = (async () => {
    while (going) {
      degraded ||= (await readiness(url)).status === 'degraded';
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
