// Clients that leave before their answer is out.

import type { ServerResponse } from 'node:http';
import type { Work } from '../activity.js';

/**
 * Ties work to its answer: a client that leaves before it is written cancels the work, also one that left while the
 * body was parsed, and the work lasts until all that was written is sent.
 * @returns a function to call when the answer is written
 */
export function untilSent(res: ServerResponse, work: Work): () => void {
  res.once('close', work.cancel);
  if (res.destroyed) work.cancel();
  return () => {
    res.off('close', work.cancel);
    if (res.destroyed) work.end();
    else res.once('close', work.end);
  };
}

/**
 * Ends an answer and its connection. Node.js says nothing to one that still waits for its turn on the connection, since
 * that has no socket yet.
 */
export function hangUp(res: ServerResponse): void {
  const isQueued = res.socket === null;
  res.destroy();
  if (isQueued) res.emit('close');
}
