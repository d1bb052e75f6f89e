// What is left to do when a worker thread has ended.

import type { Worker } from 'node:worker_threads';
import { openContext } from '../ort/context.js';
import { type Held, leftBy, prepareLedger } from '../ort/ledger.js';

export { prepareLedger };

/** Frees the onnxruntime objects that the thread still holds when it ends. */
export function freeAtEnd(worker: Worker): void {
  const { threadId } = worker;
  worker.once('exit', () => {
    const left = leftBy(threadId);
    // Without any, this thread never loads onnxruntime.
    if (left.length > 0) void free(left);
  });
}

async function free(left: readonly Held[]): Promise<void> {
  const { api } = await openContext();
  for (const { kind, handle } of left)
    (kind === 'session' ? api.releaseSession : api.releasePrepackedWeights)(handle);
}
