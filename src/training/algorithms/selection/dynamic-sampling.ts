// DAPO's dynamic sampling (2503.14476, eq. 11): questions that are always or never solved are replaced by others.
//
// The paper keeps sampling until the batch is full of groups with both right and wrong answers. Equality is judged on the
// outcome alone, before the over-long penalty, as there: two wrong answers of different length are no comparison.

import { isEqualGroup, membersByGroup } from '../advantages/groups.js';

export interface DynamicSelection {
  /** Indices of the rollouts to train on: whole groups, in the order of sampling. */
  readonly kept: readonly number[];
  readonly equalGroups: number;
  /** Groups still to be sampled. */
  readonly missingGroups: number;
}

/** @param wantedGroups  groups of a full batch; groups beyond them are left out */
export function selectGroups(
  rollouts: readonly { readonly groupId: string; readonly reward: number }[],
  wantedGroups: number,
): DynamicSelection {
  const groups = [...membersByGroup(rollouts.map(({ groupId }) => groupId)).values()];
  const differing = groups.filter((members) => !isEqualGroup(members.map((i) => rollouts[i]!.reward)));
  const kept = differing.slice(0, wantedGroups);
  return {
    kept: kept.flat().sort((a, b) => a - b),
    equalGroups: groups.length - differing.length,
    missingGroups: wantedGroups - kept.length,
  };
}
