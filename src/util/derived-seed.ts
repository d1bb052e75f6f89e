import { sha256Hex } from './digest.js';

/** Integer in [0, 2^47) that belongs to these parts, such as (seed, 'rollout', step, question, sample). */
export function derivedSeed(...parts: readonly (string | number)[]): number {
  return Number.parseInt(sha256Hex(JSON.stringify(parts)).slice(0, 12), 16) % 2 ** 47;
}
