// What each thread holds of onnxruntime's big objects. A thread that is stopped or dies cannot free them, and they
// are not JavaScript's: whoever started the thread frees them after its end. The ledger lies in memory that all
// threads see.

import { getEnvironmentData, setEnvironmentData, threadId } from 'node:worker_threads';
import type { Handle } from './api.js';

const KEY = 'searchloop.ledger';
const SLOTS = 4096;

export type HeldKind = 'session' | 'prepacked';

export interface Held {
  readonly kind: HeldKind;
  readonly handle: Handle;
}

/** Packed weights last: sessions use them. */
const KINDS: readonly HeldKind[] = ['session', 'prepacked'];

/** A slot: its thread (id + 1; 0: free), kind and address. Written by that thread only, while it lives. */
interface Ledger {
  readonly owners: Int32Array;
  readonly kinds: Uint8Array;
  readonly handles: BigUint64Array;
}

function ledger(): Ledger {
  let buffer = getEnvironmentData(KEY) as SharedArrayBuffer | undefined;
  if (buffer === undefined) {
    buffer = new SharedArrayBuffer(SLOTS * 13);
    setEnvironmentData(KEY, buffer as never);
  }
  return {
    handles: new BigUint64Array(buffer, 0, SLOTS),
    owners: new Int32Array(buffer, SLOTS * 8, SLOTS),
    kinds: new Uint8Array(buffer, SLOTS * 12, SLOTS),
  };
}

/** Must be called before a thread is started: threads inherit the ledger at their start. */
export const prepareLedger = (): void => void ledger();

/** Notes an object of this thread. A full ledger notes nothing: it only serves threads that die. */
export function enter(kind: HeldKind, handle: Handle): void {
  const { owners, kinds, handles } = ledger();
  for (let slot = 0; slot < SLOTS; slot++)
    if (Atomics.compareExchange(owners, slot, 0, threadId + 1) === 0) {
      kinds[slot] = KINDS.indexOf(kind);
      handles[slot] = handle;
      return;
    }
}

/** Takes an object of this thread out. */
export const strike = (handle: Handle): void => void take(threadId, (found) => found === handle);

/** Takes out and returns what a thread that has ended left, in the order in which it may be freed. */
export const leftBy = (thread: number): Held[] =>
  take(thread, () => true).sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind));

function take(thread: number, wanted: (handle: Handle) => boolean): Held[] {
  const { owners, kinds, handles } = ledger();
  const taken: Held[] = [];
  for (let slot = 0; slot < SLOTS; slot++) {
    const handle = handles[slot] as Handle;
    if (Atomics.load(owners, slot) !== thread + 1 || !wanted(handle)) continue;
    if (handle !== 0n) taken.push({ kind: KINDS[kinds[slot] as number] as HeldKind, handle });
    handles[slot] = 0n;
    Atomics.store(owners, slot, 0);
  }
  return taken;
}
