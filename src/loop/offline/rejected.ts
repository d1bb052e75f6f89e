// Rollouts that break an invariant are left out of a step. Where they are many, something is wrong with what writes them,
// and training on the few others would hide it.

import { IntegrityError } from '../../errors.js';
import type { RunSettings } from '../../training/index.js';

export interface Rejected {
  readonly id: string;
  readonly reason: string;
}

/** Of these the reasons are told. */
const MOST_TOLD = 3;

/**
 * @param sampled  rollouts that were audited, the rejected ones too
 * @param goOn     how work goes on once the cause is mended, in words
 * @throws {IntegrityError} more than `training.maxRejectedShare` of them are rejected
 */
export function refuseRejected(
  rejected: readonly Rejected[],
  sampled: number,
  { maxRejectedShare }: Pick<RunSettings, 'maxRejectedShare'>,
  goOn: string,
): void {
  if (rejected.length <= maxRejectedShare * sampled) return;
  const told = rejected.slice(0, MOST_TOLD).map(({ id, reason }) => `${id}: ${reason}`);
  const more = rejected.length > MOST_TOLD ? [`and ${rejected.length - MOST_TOLD} more`] : [];
  throw new IntegrityError(
    `${rejected.length} of the ${sampled} rollouts of a step failed the audit, and training.maxRejectedShare is ${maxRejectedShare}: nothing is learned from it (${[...told, ...more].join('; ')}). Tokenizer, prompt and engine must be those of the model (see searchloop doctor); ${goOn}`,
  );
}
