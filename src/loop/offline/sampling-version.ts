// Which of the trainer's versions sampled a rollout, and how many commits ago.
//
// The checkpoints are the memory of the trainer's versions: under one that is not among them no log-probability can be
// taken any more, so whatever it sampled is too old. Every step is committed, so commits are counted by steps.

import { dirname } from 'node:path';
import { listCheckpoints, type Trainer } from '../../training/index.js';
import type { TrajectoryRecord } from '../../trajectory/index.js';

/** By version: the folder of its checkpoint, and the commits since then. */
export type TrainerVersions = ReadonlyMap<string, { readonly folder: string; readonly commits: number }>;

export interface Sampler {
  readonly version: string;
  /** Commits since then; infinite where the trainer has no such version. */
  readonly staleness: number;
}

/** The present version, and those before it whose checkpoints are still there. */
export async function trainerVersions({ committed }: Pick<Trainer, 'committed'>): Promise<TrainerVersions> {
  const { checkpoints } = await listCheckpoints(dirname(committed.folder));
  const versions = new Map<string, { folder: string; commits: number }>();
  for (const { folder, manifest } of checkpoints) {
    const commits = committed.step - manifest.step;
    // What lies beyond the present step is of a branch that was given up.
    if (commits >= 0) versions.set(manifest.version, { folder, commits });
  }
  return versions.set(committed.version, { folder: committed.folder, commits: 0 });
}

/** The oldest token of a rollout decides. */
export function samplerOf({ versions }: Pick<TrajectoryRecord, 'versions'>, known: TrainerVersions): Sampler {
  const samplers = versions.map(({ adapterVersion }): Sampler => {
    const staleness = known.get(adapterVersion)?.commits ?? Number.POSITIVE_INFINITY;
    return { version: adapterVersion, staleness };
  });
  return samplers.reduce((oldest, other) => (other.staleness > oldest.staleness ? other : oldest));
}
