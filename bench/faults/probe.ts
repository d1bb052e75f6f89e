// Loaded into the server (node --import): writes down how long its event loop was held, and ends the store's thread when
// it is told to.

import { appendFileSync, existsSync, rmSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread, workerData } from 'node:worker_threads';

const { FAULT_DELAYS, FAULT_DIE } = process.env;
const EVERY_MS = 100;

if (isMainThread && FAULT_DELAYS !== undefined) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  setInterval(() => {
    appendFileSync(FAULT_DELAYS, `${performance.now() + monotonicStart()} ${delay.max / 1e6}\n`);
    delay.reset();
  }, EVERY_MS).unref();
}

/** So that times can be compared with those of other processes, whatever the clock says. */
function monotonicStart(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6 - performance.now();
}

const isStore = (workerData as { data?: { storage?: unknown } } | null)?.data?.storage !== undefined;
if (!isMainThread && isStore && FAULT_DIE !== undefined)
  setInterval(() => {
    if (!existsSync(FAULT_DIE)) return;
    rmSync(FAULT_DIE);
    process.exit(1);
  }, 20).unref();
