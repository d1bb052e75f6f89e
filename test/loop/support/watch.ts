import { newSequentialState } from '../../../src/loop/online/statistics/sequential-test.js';
import type { Watch } from '../../../src/loop/online/watch.js';

/** One that has just begun, of half the requests. */
export const newWatch = (changes: Partial<Watch> = {}): Watch => ({
  version: 'new',
  against: 'old',
  earlier: [],
  trainerStep: 1,
  confirmedBy: null,
  share: 0.5,
  since: 0,
  feedback: 0,
  test: newSequentialState(),
  pairs: [],
  counted: [],
  settled: newSequentialState(),
  newer: [],
  older: [],
  weights: { newer: {}, older: {} },
  beyondShare: 0,
  ...changes,
});
