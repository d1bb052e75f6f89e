// What the state of a loop that does not run still counts of what somebody has had deleted. One that runs sees to it by itself.

import type { LoopConfig } from '../../config/index.js';
import { ConflictError } from '../../errors.js';
import type { TrajectoryStore } from '../../trajectory/index.js';
import { documentOf, readLoopState, STATE_DOCUMENT, USED_DOCUMENT, usedOf } from './state.js';
import { countedIds, watchSettings, withoutDeleted } from './watch.js';

export type ForgetfulStore = Pick<TrajectoryStore, 'readDocument' | 'putDocuments' | 'deletedAmong'>;

/** To be called after a deletion. @throws {FileFormatError} the state is of no version that is known */
export async function forgetDeleted(store: ForgetfulStore, loop: LoopConfig): Promise<void> {
  const stored = await store.readDocument(STATE_DOCUMENT);
  const state = await readLoopState(store);
  if (state === null || state.watch === null) return;
  const gone = new Set(await store.deletedAmong(countedIds(state.watch)));
  const watch = withoutDeleted(state.watch, gone, watchSettings(loop));
  if (watch === state.watch) return;
  try {
    // Earlier builds wrote both in one: what one document leaves out, the other must have.
    const documents = {
      [STATE_DOCUMENT]: documentOf({ ...state, watch }),
      [USED_DOCUMENT]: usedOf(state),
    };
    await store.putDocuments(documents, { [STATE_DOCUMENT]: stored });
  } catch (error) {
    // A loop has written meanwhile, so it runs.
    if (!(error instanceof ConflictError)) throw error;
  }
}
