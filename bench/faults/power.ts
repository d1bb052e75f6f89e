// The power is cut under load, the loop at work: after a kill, what was written and not synced is taken back, all of it or
// a part chosen by chance, and renames in folders that were not synced. Then the server starts on what is left.

import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Acknowledged } from './acknowledged.js';
import { auditStore, checkStore, storeFile } from './check.js';
import { loopFaults, type SeenLoop, seeLoop } from './check-loop.js';
import { Load } from './clients.js';
import type { House } from './houses.js';
import { randomOf } from './kills.js';
import { createFaultLayer } from './layer/fault-layer.js';
import { startServer } from './server-process.js';
import { until } from './until.js';

export interface PowerResult {
  readonly cuts: number;
  /** Writes and renames that the cuts took. */
  readonly taken: number;
  readonly answers: number;
  readonly lost: number;
  readonly steps: number;
  readonly faults: readonly string[];
}

const LONGEST_MS = 3000;
const LEAST_ANSWERS = 5;
const MOST_WAIT_MS = 20_000;

export async function powerCuts(options: {
  readonly house: House;
  readonly cuts: number;
  readonly folder: string;
  readonly note: (line: string) => void;
}): Promise<PowerResult> {
  const { house, cuts, folder, note } = options;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const layer = createFaultLayer(folder);
  const data = join(layer.folder, 'data');
  const acknowledged = Acknowledged.read(null);
  const faults: string[] = [];
  let taken = 0;
  let lost = 0;
  let before: SeenLoop | null = null;
  for (let cut = 0; cut <= cuts; cut++) {
    const random = randomOf(1000 + cut);
    const flags = house.flags(data, house.loopFlags);
    const server = startServer({ flags, environment: layer.environment, folder });
    try {
      const url = await server.ready;
      const now = await seeLoop(url);
      if (existsSync(storeFile(data))) {
        const found = checkStore(storeFile(data), acknowledged);
        lost += found.lostAnswers.length + found.lostFeedback.length;
        faults.push(...found.faults);
        if (now === null) faults.push('the loop did not start');
        else if (before !== null) faults.push(...loopFaults(data, before, now));
        faults.push(...(await auditStore(storeFile(data), house.auditor, 120_000)));
      }
      if (cut === cuts) break;
      const load = new Load({ url, house, acknowledged, random, pauseMs: 100 });
      await until(() => load.seen.length >= LEAST_ANSWERS, MOST_WAIT_MS);
      // In every second round until the loop has come further.
      const step = now?.step ?? 0;
      if (cut % 2 === 1) await until(async () => ((await seeLoop(url))?.step ?? 0) > step, MOST_WAIT_MS);
      await sleep(random() * LONGEST_MS);
      // Some of it is under way: written, and not synced for a while.
      if (random() < 0.5) layer.set('stall 300');
      await sleep(random() * 300);
      before = await seeLoop(url);
      load.expectKill();
      await server.kill();
      await load.end();
      layer.set('none');
      const some = layer.cutPower(random() < 0.5 ? () => false : () => random() < 0.5);
      taken += some;
      note(
        `power ${cut + 1}/${cuts}: ${some} writes taken back, ${acknowledged.answers().length} answers, loop ${before?.state} at step ${before?.step}, ${before?.counts.published} published${faults.map((fault) => `\n  FAULT: ${fault}`).join('')}`,
      );
    } finally {
      layer.set('none');
      await server.kill();
    }
  }
  return { cuts, taken, answers: acknowledged.answers().length, lost, steps: before?.step ?? 0, faults };
}
