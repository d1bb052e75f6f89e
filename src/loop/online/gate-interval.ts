import type { LoopState } from './state.js';

const MOST_DOUBLINGS = 3;

/**
 * Steps from one verdict to the next: `loop.gateEvery`, and after each way back to the live version for want of proof twice as
 * many as before, eight times at most. Where a policy has to get worse before it gets better, or stands still for a while, the
 * same few steps from the same version would fail again and again. Versions that users send back count likewise: where the
 * gate's questions are unlike what users ask, they would have one worse version after the other.
 */
export const gateInterval = (
  gateEvery: number,
  { returns, rolledBackInARow }: Pick<LoopState, 'returns' | 'rolledBackInARow'>,
): number => gateEvery * 2 ** Math.min(returns + rolledBackInARow, MOST_DOUBLINGS);
