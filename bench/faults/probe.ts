// Loaded into the server (node --import): writes down how long its event loop was held, and ends a thread when it is told to.

import { appendFileSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';
import { monotonicNow } from './monotonic.js';
import type { ThreadName } from './server-process.js';

const { FAULT_DELAYS, FAULT_DIE } = process.env;
const EVERY_MS = 100;

if (isMainThread && FAULT_DELAYS !== undefined) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  setInterval(() => {
    appendFileSync(FAULT_DELAYS, `${monotonicNow()} ${delay.max / 1e6}\n`);
    delay.reset();
  }, EVERY_MS).unref();
}

/** By the file that the thread began with. */
function threadName(): ThreadName | null {
  const file = process.argv[1] ?? '';
  if (file.includes('piscina')) return 'trainer';
  if (file.endsWith(join('store', 'worker.js'))) return 'store';
  return file.endsWith(join('engine', 'worker.js')) ? 'engine' : null;
}

const name = isMainThread ? null : threadName();
if (name !== null && FAULT_DIE !== undefined) {
  const order = `${FAULT_DIE}.${name}`;
  setInterval(() => {
    if (!existsSync(order)) return;
    // Of several threads one ends: whoever takes the order.
    try {
      rmSync(order);
    } catch {
      return;
    }
    process.exit(1);
  }, 20).unref();
}
