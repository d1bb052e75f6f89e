import { setTimeout as sleep } from 'node:timers/promises';

/** Whether a condition came true in time. */
export async function until(condition: () => boolean | Promise<boolean>, mostMs: number): Promise<boolean> {
  const deadline = performance.now() + mostMs;
  while (performance.now() < deadline) {
    if (await condition()) return true;
    await sleep(20);
  }
  return false;
}
