// Sessions by thread. A thread that is stopped or dies cannot free its sessions, and onnxruntime's memory is not
// JavaScript's: whoever started the thread frees them after its end. The ledger lies in memory that all threads see.

import { getEnvironmentData, setEnvironmentData, threadId } from 'node:worker_threads';
import type { Handle } from './api.js';

const KEY = 'searchloop.sessions';
const SLOTS = 4096;

/** Slot: its thread (id + 1; 0: free) and the session's address. Written by that thread only, while it lives. */
interface Ledger {
  readonly owners: Int32Array;
  readonly sessions: BigUint64Array;
}

function ledger(): Ledger {
  let buffer = getEnvironmentData(KEY) as SharedArrayBuffer | undefined;
  if (buffer === undefined) {
    buffer = new SharedArrayBuffer(SLOTS * 12);
    setEnvironmentData(KEY, buffer as never);
  }
  return {
    sessions: new BigUint64Array(buffer, 0, SLOTS),
    owners: new Int32Array(buffer, SLOTS * 8, SLOTS),
  };
}

/** Must be called before a thread is started: threads inherit the ledger at their start. */
export const prepareLedger = (): void => void ledger();

/** Notes a session of this thread. A full ledger notes nothing: it only serves threads that die. */
export function enter(session: Handle): void {
  const { owners, sessions } = ledger();
  for (let slot = 0; slot < SLOTS; slot++)
    if (Atomics.compareExchange(owners, slot, 0, threadId + 1) === 0) {
      sessions[slot] = session;
      return;
    }
}

/** Takes a session of this thread out. */
export const strike = (session: Handle): void => void take(threadId, (found) => found === session);

/** Takes out and returns the sessions that a thread which has ended left open. */
export const sessionsLeftBy = (thread: number): Handle[] => take(thread, () => true);

function take(thread: number, wanted: (session: Handle) => boolean): Handle[] {
  const { owners, sessions } = ledger();
  const taken: Handle[] = [];
  for (let slot = 0; slot < SLOTS; slot++) {
    const session = sessions[slot] as Handle;
    if (Atomics.load(owners, slot) !== thread + 1 || !wanted(session)) continue;
    if (session !== 0n) taken.push(session);
    sessions[slot] = 0n;
    Atomics.store(owners, slot, 0);
  }
  return taken;
}
