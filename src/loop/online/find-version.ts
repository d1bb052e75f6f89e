// Where on disk a policy version lies that no configuration names: among the published ones, or as a checkpoint of the
// loop's trainer that is still kept.

import { IntegrityError, NotFoundError } from '../../errors.js';
import { listCheckpoints } from '../../training/index.js';
import { checkpointsOf, versionsOf } from './house.js';
import { checkVersion } from './version-folder.js';

export interface FoundVersion {
  readonly folder: string;
  readonly kind: 'published' | 'checkpoint';
}

const DIGEST = /^[0-9a-f]{64}$/;

/**
 * @param folder   of the loop
 * @param version  digest of the adapter
 * @returns        null where neither has it
 * @throws {IntegrityError} it was published, its files are damaged, and no checkpoint has it
 */
export async function findVersion(folder: string, version: string): Promise<FoundVersion | null> {
  // Records may come from elsewhere: what they say is no path before it was looked at.
  if (!DIGEST.test(version)) return null;
  let damaged: IntegrityError | null = null;
  try {
    return { folder: await checkVersion(versionsOf(folder), version), kind: 'published' };
  } catch (error) {
    if (error instanceof IntegrityError) damaged = error;
    else if (!(error instanceof NotFoundError)) throw error;
  }
  const { checkpoints } = await listCheckpoints(checkpointsOf(folder));
  const found = checkpoints.findLast(({ manifest }) => manifest.version === version);
  if (found !== undefined) return { folder: found.folder, kind: 'checkpoint' };
  if (damaged !== null) throw damaged;
  return null;
}
