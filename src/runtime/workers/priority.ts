// Scheduling priority of one thread. Linux only: elsewhere priorities belong to processes.

import { readlinkSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/**
 * Sets the nice value (0 to 19; 19 yields to everyone) of the calling thread, unless it yields more than that already: whoever
 * started the process with `nice` meant all of it. Threads that it starts later, onnxruntime's among them, inherit it.
 * @returns whether it yields so much now: false where the system has no such thing or refuses
 */
export function setCurrentThreadPriority(nice: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    // The link reads `PID/task/TID`.
    const thread = Number(readlinkSync('/proc/thread-self').split('/').pop());
    if (getPriority(thread) < nice) setPriority(thread, nice);
    return true;
  } catch {
    return false;
  }
}
