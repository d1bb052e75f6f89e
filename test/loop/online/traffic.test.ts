// Where the next questions go.

import { trafficOf } from '../../../src/loop/online/traffic.js';
import { newWatch } from '../support/watch.js';

const nameOf = (version: string): string | null => (version === 'base' ? null : `loop-${version}`);
const watchOf = (share: number, version = 'new') =>
  newWatch({ version, against: 'old', share, trainerStep: 1, confirmedBy: null });

test('answers are explored in mode logged alone: nothing else learns from them', () => {
  const share = (mode: 'replay' | 'logged') =>
    trafficOf({ mode, exploreShare: 0.25 }, { watch: null }, nameOf).exploreShare;
  expect([share('logged'), share('replay')]).toEqual([0.25, 0]);
});

test('only what is on trial shares the traffic', () => {
  const canary = (watch: Parameters<typeof trafficOf>[1]['watch']) =>
    trafficOf({ mode: 'replay', exploreShare: 0 }, { watch }, nameOf).canary;
  expect(canary(watchOf(0.1))).toEqual({ adapter: 'loop-new', version: 'new', share: 0.1 });
  // Watched, and live itself.
  expect(canary(watchOf(1))).toBeNull();
  expect(canary(null)).toBeNull();
  expect(canary(watchOf(0.1, 'base'))).toBeNull();
});
