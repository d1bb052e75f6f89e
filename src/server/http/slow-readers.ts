import type { RequestHandler } from 'express';

/**
 * Ends the connection of a client that takes nothing for `timeoutMs` while an answer waits to be sent. Node's
 * socket timer counts only time without progress, so a slow reader is left alone; and so is one that waits for us.
 */
export function slowReaders(timeoutMs: number): RequestHandler {
  return (_req, res, next) => {
    res.setTimeout(timeoutMs, () => {
      if (res.writableLength > 0) res.destroy();
    });
    next();
  };
}
