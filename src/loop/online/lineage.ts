// What became of the records that a candidate was made of.

import type { TrajectoryStore } from '../../trajectory/index.js';

/**
 * Records that were deleted after versions had been trained on them, over the line from `version` back to `live`, which is
 * left out: what is live is not judged again.
 */
export async function deletedAlong(
  store: Pick<TrajectoryStore, 'lineOf'>,
  version: string,
  live: string,
): Promise<number> {
  const line = await store.lineOf(version, [live]);
  return line.reduce((sum, { deletedRecords }) => sum + deletedRecords, 0);
}
