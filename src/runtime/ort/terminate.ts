// Ending a run from another thread, since a run blocks its own. Both threads hold the same cells; a lock
// keeps the run options alive while they are used.

import { CancelledError } from '../../errors.js';
import type { TerminateHandle } from '../session.js';

const LOCK = 0;
const REQUESTED = 1;
const CLOSED = 2;
const CELLS = 3;

/** What is done to onnxruntime's run options, by their address. */
export interface RunOptionsSwitch {
  setTerminate(runOptions: bigint): void;
  unsetTerminate(runOptions: bigint): void;
}

/** Held for a few instructions only. */
function locked<T>(cells: Int32Array, work: () => T): T {
  while (Atomics.compareExchange(cells, LOCK, 0, 1) !== 0);
  try {
    return work();
  } finally {
    Atomics.store(cells, LOCK, 0);
  }
}

/** @param runOptions  0n where runs cannot be ended, only kept from starting */
export const createTerminateHandle = (runOptions: bigint): TerminateHandle => ({
  runOptions,
  cells: new Int32Array(new SharedArrayBuffer(CELLS * Int32Array.BYTES_PER_ELEMENT)),
});

/** Asks the run to end; without a run, the next one does. */
export function requestTerminate({ cells, runOptions }: TerminateHandle, api: RunOptionsSwitch | null): void {
  locked(cells, () => {
    if (cells[CLOSED]) return;
    cells[REQUESTED] = 1;
    if (runOptions !== 0n) api?.setTerminate(runOptions);
  });
}

/** Takes a request back and says whether there was one. */
function takeRequest({ cells, runOptions }: TerminateHandle, api: RunOptionsSwitch | null): boolean {
  return locked(cells, () => {
    const requested = cells[REQUESTED] === 1;
    cells[REQUESTED] = 0;
    if (requested && runOptions !== 0n) api?.unsetTerminate(runOptions);
    return requested;
  });
}

/**
 * Does a run that a request may end.
 * @throws {CancelledError} when it was ended, or was not started because of an earlier request
 */
export async function terminable(
  handle: TerminateHandle,
  api: RunOptionsSwitch | null,
  run: () => void | Promise<void>,
): Promise<void> {
  if (takeRequest(handle, api)) throw new CancelledError('the run was terminated before it started');
  let failure: unknown;
  try {
    await run();
  } catch (error) {
    failure = error;
  }
  const requested = takeRequest(handle, api);
  if (failure === undefined) return;
  throw requested ? new CancelledError('the run was terminated', { cause: failure }) : failure;
}

/** From here on requests do nothing, and `release` may free the run options. */
export function closeTerminateHandle({ cells }: TerminateHandle, release: () => void): void {
  locked(cells, () => {
    cells[CLOSED] = 1;
    release();
  });
}
