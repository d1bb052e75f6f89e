// Events that wait already are handed on without any pause between them, and those of all requests in one turn of
// the event loop. A turn ends after a few milliseconds, so that sockets and timers are not kept waiting.

import { setImmediate as nextTurn } from 'node:timers/promises';

/** Time that all requests together may take in one turn. */
const TURN_MS = 4;

let turnBegan: number | null = null;

/** Resolves at once while the turn lasts, else in a later one. */
export async function fairTurn(): Promise<void> {
  const now = performance.now();
  if (turnBegan === null) {
    turnBegan = now;
    setImmediate(() => {
      turnBegan = null;
    });
  } else if (now - turnBegan >= TURN_MS) await nextTurn();
}
