import { loadConfig } from '../../../src/config/index.js';
import { unjudged } from '../../../src/loop/online/learn.js';
import { type LoopState, newLoopState } from '../../../src/loop/online/state.js';
import { newSequentialState } from '../../../src/loop/online/statistics/sequential-test.js';
import { newWatch } from '../support/watch.js';

const { loop } = loadConfig({ env: {}, flags: { 'loop.gateEvery': 3 } });
const after = (stepsSinceGate: number, changes: Partial<LoopState>): string | null =>
  unjudged({ settings: loop }, { ...newLoopState(0, 'base'), stepsSinceGate, ...changes });

const watch = (share: number) =>
  newWatch({ version: 'a'.repeat(64), share, test: { ...newSequentialState(), pairs: 7 } });

test('training runs no further ahead of a trial than of a gate that waits', () => {
  expect(after(11, { watch: watch(0.1) })).toBeNull();
  expect(after(12, { watch: watch(0.1) })).toMatch(
    /^version aaaaaaaaaaaa is on trial.*labelled 7 pairs.*after 400$/,
  );
  // What is live itself is watched while others are judged.
  expect(after(99, { watch: watch(1) })).toBeNull();
  const lastGate = { version: 'b', verdict: 'waits', reasons: ['too few'], tests: [], at: 0 } as const;
  const waits = { lastGate: { ...lastGate, reasons: ['too few'], tests: [] } };
  expect([after(11, waits), after(12, waits)]).toEqual([null, 'too few']);
});
