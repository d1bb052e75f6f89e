// What goes wrong, one case a fault: the disk, another process, a thread, the clock.

import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '#searchloop/storage/index.js';
import { storeFile } from './check.js';
import { seeLoop } from './check-loop.js';
import type { Fault, FaultLayer } from './layer/fault-layer.js';
import type { ServerProcess, ThreadName } from './server-process.js';
import { until } from './until.js';

export interface Running {
  /** Resolves when the fault has stood for long enough: at least `HELD_MS`, and until some answers came meanwhile. */
  held(): Promise<void>;
  readonly layer: FaultLayer;
  readonly server: ServerProcess;
  readonly url: string;
  readonly data: string;
}

export interface DiskCase {
  readonly name: string;
  /** Nothing can be stored while it lasts: readiness must say so. Otherwise it may. */
  readonly degrades: boolean;
  /** Answers under way end with it, and none comes until what died is back. */
  readonly breaksAnswers?: boolean;
  /** It is about a server that learns. */
  readonly learns?: boolean;
  /** Lets the fault begin, stand and end; resolves when all is well again. @returns what was not as it should be */
  act(running: Running): Promise<readonly string[]>;
}

export const HELD_MS = 2000;
const THREAD_KILLS = 3;
const DAY_MS = 86_400_000;
const TRAINING_MS = 60_000;

/** @param list  one after the other */
const faults = (name: string, ...list: readonly (readonly Fault[])[]): DiskCase => ({
  name,
  degrades: true,
  async act({ layer, held }) {
    for (const some of list) {
      layer.set(...some);
      await held();
    }
    layer.set('none');
    return [];
  },
});

async function killAgain({ server, held }: Running, thread: ThreadName): Promise<string[]> {
  let found = 0;
  for (let kills = 0; kills < THREAD_KILLS; kills++) {
    if (await server.killThread(thread)) found++;
    await held();
  }
  return found === THREAD_KILLS
    ? []
    : [`the ${thread}'s thread was there for ${found} of ${THREAD_KILLS} kills`];
}

export const CASES: readonly DiskCase[] = [
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
      return [];
    },
  },
  {
    name: "the store's thread is killed three times",
    degrades: false,
    act: (running) => killAgain(running, 'store'),
  },
  {
    name: "the engine's thread is killed three times",
    degrades: false,
    breaksAnswers: true,
    act: (running) => killAgain(running, 'engine'),
  },
  {
    name: 'the thread that trains is killed three times',
    degrades: false,
    learns: true,
    act: killTrainer,
  },
  {
    name: 'the clock is set back by a day',
    degrades: false,
    async act({ layer, held, data }) {
      layer.set(`clock ${-DAY_MS}`);
      await held();
      layer.set('none');
      const database = openDatabase(storeFile(data), { readonly: true });
      try {
        const query = database.prepare('select count(*) from trajectories where created_at < ?').pluck();
        const early = query.get(Date.now() - DAY_MS / 2) as number;
        return early > 0 ? [] : ['no record has a time of the day before: the clock was not set back'];
      } finally {
        database.close();
      }
    },
  },
];

/** Each kill comes while a step is trained; afterwards steps must come to an end again. */
async function killTrainer({ server, url }: Running): Promise<string[]> {
  const step = async (): Promise<number> => (await seeLoop(url))?.step ?? 0;
  const wrong: string[] = [];
  for (let kills = 0; kills < THREAD_KILLS; kills++) {
    const trains = await until(async () => (await seeLoop(url))?.state === 'training', TRAINING_MS);
    if (!trains || !(await server.killThread('trainer'))) wrong.push('nothing was training');
    await sleep(HELD_MS);
  }
  const before = await step();
  if (!(await until(async () => (await step()) > before, TRAINING_MS)))
    wrong.push(`no step came to an end after step ${before}`);
  const seen = await seeLoop(url);
  if (seen?.state === 'paused') wrong.push(`the loop is paused: ${seen.paused_for}`);
  return wrong;
}
