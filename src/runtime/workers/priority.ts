// Scheduling priority of one thread. Linux only: elsewhere priorities belong to processes.

import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';

/**
 * Sets the nice value (-20 to 19; 19 yields to everyone) of the calling thread. Threads that it starts later,
 * onnxruntime's among them, inherit it. It cannot be raised again without rights.
 * @returns whether it was set: false where the system has no such thing or refuses
 */
export function setCurrentThreadPriority(nice: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    // The link reads `PID/task/TID`.
    const thread = Number(readlinkSync('/proc/thread-self').split('/').pop());
    setPriority(thread, nice);
    return true;
  } catch {
    return false;
  }
}
