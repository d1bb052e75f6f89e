import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Response } from 'express';
import { isHeavy, jsonPieces } from '../json/pieces.js';
import { drained } from './sse.js';

/**
 * Sends a value as the whole answer; a big one piece by piece, with turns for others in between.
 * @throws {CancelledError} the client left meanwhile
 */
export async function sendJson(res: Response, value: unknown): Promise<void> {
  if (!isHeavy(value)) {
    res.json(value);
    return;
  }
  res.status(200).set('content-type', 'application/json; charset=utf-8');
  await sendPieces(res, jsonPieces(value));
}

/** Sends the pieces of a body and ends the answer. */
export async function sendPieces(res: Response, pieces: Iterable<string>): Promise<void> {
  for (const piece of pieces) {
    if (!res.write(piece)) await drained(res);
    await nextTurn();
  }
  res.end();
}
