// Begins the loop anew: what it was is put aside, under a name of its own; records, feedback and keys stay. Needed where the
// policy that the loop began with is no more the configured one, or where its folder was lost.

import { readdir, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { NotFoundError } from '../../errors.js';
import type { TrajectoryStore } from '../../trajectory/index.js';
import { syncFolder } from '../../util/atomic-file.js';
import { claimRun } from '../offline/run-folder.js';
import { gateAnswersFile } from './house.js';
import { OWNER_DOCUMENT } from './ownership.js';
import { STATE_DOCUMENT, USED_DOCUMENT } from './state.js';

export interface LoopReset {
  /** Document in the store that holds the state as it was; null: there was none. */
  readonly state: string | null;
  /** Where checkpoints and versions lie now; null: there were none. */
  readonly folder: string | null;
}

export interface ResetOptions {
  /** Of the loop. */
  readonly folder: string;
  readonly onNote?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * Waits for a process that has the folder; one that has the state with another folder finds its writes refused from then on.
 * @throws {NotFoundError} there is no loop
 * @throws {CancelledError} on abort
 */
export async function resetLoop(
  store: Pick<TrajectoryStore, 'readDocument' | 'putDocuments'>,
  { folder, ...options }: ResetOptions,
): Promise<LoopReset> {
  const held = await claimRun(folder, options);
  const aside = `${folder}-before-${new Date().toISOString().replace(/[:.]/g, '-')}`;
  try {
    const used = await store.readDocument(USED_DOCUMENT);
    const [state, owner] = [
      await store.readDocument(STATE_DOCUMENT),
      await store.readDocument(OWNER_DOCUMENT),
    ];
    const names = (await readdir(folder)).filter((name) => name !== basename(held.path));
    if (state === null && owner === null && names.length === 0)
      throw new NotFoundError(`neither the store nor ${folder} knows of a loop`);
    const archived = state === null ? null : `${STATE_DOCUMENT}.before.${Date.now()}`;
    await store.putDocuments({
      // Whom a watch heard no deletion would reach there either.
      ...(archived === null
        ? {}
        : { [archived]: { state: { ...(state as object), watch: null }, owner, used } }),
      [STATE_DOCUMENT]: null,
      [OWNER_DOCUMENT]: null,
      [USED_DOCUMENT]: null,
    });
    if (names.length === 0) return { state: archived, folder: null };
    // Deletions reach what the loop keeps of the gate's answers in its own folder only.
    await rm(gateAnswersFile(folder), { force: true });
    await rename(folder, aside);
    await syncFolder(join(aside, '..'));
    return { state: archived, folder: aside };
  } finally {
    await held.release(true);
    await rm(join(aside, basename(held.path)), { force: true });
  }
}
