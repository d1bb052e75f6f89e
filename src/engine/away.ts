import { UnavailableError } from '../errors.js';

/** The engine cannot be used now: its worker starts again, or has no room before a running sequence ends. Nothing that was asked is at fault. */
export class EngineAwayError extends UnavailableError {}

/** What came of a call to the worker: where it was away, that is the engine's. */
export async function unlessAway<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof UnavailableError) || error instanceof EngineAwayError) throw error;
    throw new EngineAwayError(error.message, { cause: error });
  }
}
