// Looks at something again and again, beside whatever else goes on.

import { setTimeout as sleep } from 'node:timers/promises';

export interface LookSettings {
  readonly everyMs: number;
  /** Ends it. */
  readonly closed: AbortSignal;
  readonly onFailure: (error: Error) => void;
}

/** After a failure it rests longer and longer, up to so many times `everyMs`. */
const LONGEST_REST = 16;

/** Resolves when `closed` has fired and the look under way has ended. */
export async function lookAgain(
  look: () => Promise<void>,
  { everyMs, closed, onFailure }: LookSettings,
): Promise<void> {
  for (let rest = 1; !closed.aborted; ) {
    try {
      await look();
      rest = 1;
    } catch (error) {
      if (closed.aborted) return;
      onFailure(error as Error);
      rest = Math.min(2 * rest, LONGEST_REST);
    }
    await sleep(rest * everyMs, undefined, { signal: closed, ref: false }).catch(() => {});
  }
}
