// How much of a step, or of a verdict, may come from one key; an admin has no limit.

import type { LabelSource, StoredHead } from '../../trajectory/index.js';

/** Who spoke of an answer, and who asked for it. */
export interface Said {
  readonly sources: readonly Pick<LabelSource, 'keyId' | 'role'>[];
  readonly head: Pick<StoredHead, 'keyId'>;
}

/** Of `count` answers; one is always allowed. */
export const shareLimit = (keyShare: number, count: number): number =>
  Math.max(1, Math.floor(keyShare * count));

/** Whether none of its keys would go beyond the limit with it. */
export function hasShare(said: Said, weight: ReadonlyMap<string, number>, limit: number): boolean {
  const keys = keysOf(said);
  return keys.every((key) => (weight.get(key) ?? 0) + 1 / keys.length <= limit + 1e-9);
}

/**
 * Counts the answer on its keys, in equal parts, unless one of them would go beyond its limit. An answer without a label
 * counts on the key that asked: whoever asks must not fill the steps of others either.
 */
export function takesShare(said: Said, weight: Map<string, number>, limit: number): boolean {
  if (!hasShare(said, weight, limit)) return false;
  const keys = keysOf(said);
  for (const key of keys) weight.set(key, (weight.get(key) ?? 0) + 1 / keys.length);
  return true;
}

/** Takes an answer back that was counted on its keys. */
export function returnShare(said: Said, weight: Map<string, number>): void {
  const keys = keysOf(said);
  for (const key of keys) {
    const left = (weight.get(key) ?? 0) - 1 / keys.length;
    if (left > 1e-9) weight.set(key, left);
    else weight.delete(key);
  }
}

function keysOf({ sources, head }: Said): string[] {
  const labelling = sources.filter(({ role }) => role !== 'admin').map(({ keyId }) => keyId);
  const asking = sources.length === 0 && head.keyId !== null ? [`asked by ${head.keyId}`] : [];
  return [...new Set([...labelling, ...asking])];
}
