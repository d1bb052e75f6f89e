// What is left to do when a worker thread has ended.

import type { Worker } from 'node:worker_threads';
import { openContext } from '../ort/context.js';
import { prepareLedger, sessionsLeftBy } from '../ort/ledger.js';

export { prepareLedger };

/** Frees the onnxruntime sessions that the thread still holds when it ends. */
export function freeSessionsAtEnd(worker: Worker): void {
  const { threadId } = worker;
  worker.once('exit', () => {
    const left = sessionsLeftBy(threadId);
    // Without sessions this thread never loads onnxruntime.
    if (left.length > 0) void openContext().then(({ api }) => left.forEach(api.releaseSession));
  });
}
