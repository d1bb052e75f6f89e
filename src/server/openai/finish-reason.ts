import type { RolloutFinish } from '../../rollout/index.js';

/** The only values that leave the house; typed clients break on others. */
export type FinishReason = 'stop' | 'length';

/** A cancelled rollout never comes here: it ends in an error, or with nobody listening. */
export function finishReasonOf(finish: RolloutFinish): FinishReason {
  return finish === 'length' ? 'length' : 'stop';
}
