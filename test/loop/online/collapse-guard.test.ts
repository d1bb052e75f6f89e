import { loadConfig } from '../../../src/config/index.js';
import {
  type GuardState,
  guardSettings,
  guardUnder,
  type HealthFigures,
  guardStep as judgeStep,
  newGuardState,
} from '../../../src/loop/online/collapse-guard.js';

const settings = guardSettings(loadConfig({ env: {} }).loop);
const guardStep = (state: GuardState, figures: HealthFigures) => judgeStep(state, figures, settings);

const healthy: HealthFigures = {
  entropy: 0.8,
  kl: 0.02,
  clipFraction: 0.05,
  zeroVarianceShare: 0.4,
  thinkRepetition: 0.05,
  correctLogprob: -0.4,
  responseTokens: 80,
};

function after(steps: number): GuardState {
  let state = newGuardState();
  for (let i = 0; i < steps; i++) state = guardStep(state, healthy).state;
  return state;
}

test('what was normal under other prompts, limits or another index is forgotten', () => {
  const guard = after(6);
  expect(guardUnder({ guard, guardOf: 'a' }, 'a')).toEqual({ guard, guardOf: 'a' });
  const anew = guardUnder({ guard, guardOf: 'a' }, 'b');
  expect(anew).toEqual({ guard: newGuardState(), guardOf: 'b' });
  // Ten times as long is no alarm then, and would have been.
  const longer = { ...healthy, responseTokens: 800 };
  for (const [state, alarms] of [
    [guard, 1],
    [anew.guard, 0],
  ] as const)
    expect(guardStep(guardStep(state, longer).state, longer).alarms).toHaveLength(alarms);
  // A build that did not note it: nobody can tell, so it stays.
  expect(guardUnder({ guard, guardOf: '' }, 'b')).toEqual({ guard, guardOf: 'b' });
});

test('a healthy run has no alarm', () => {
  let state = newGuardState();
  for (let i = 0; i < 50; i++) {
    const wobble = 1 + 0.3 * Math.sin(i);
    const verdict = guardStep(state, { ...healthy, entropy: 0.8 * wobble, responseTokens: 80 * wobble });
    expect(verdict).toMatchObject({ alarms: [], stable: true });
    state = verdict.state;
  }
});

test.each<[keyof HealthFigures, number, string]>([
  ['entropy', 0.05, 'entropy 0.05 nats, below 0.16'],
  ['kl', 0.7, 'KL to the reference 0.7'],
  ['clipFraction', 0.6, 'clip fraction 0.6'],
  ['zeroVarianceShare', 1, 'equally wrong 1'],
  ['thinkRepetition', 0.6, 'repetition in think blocks 0.6'],
  ['correctLogprob', -2, 'right answers -2 nats'],
  ['responseTokens', 400, 'response length 400 tokens, its normal is 80'],
  ['responseTokens', 10, 'response length 10 tokens, its normal is 80'],
])('%s at %d is an alarm the second time, not the first', (figure, value, words) => {
  const first = guardStep(after(10), { ...healthy, [figure]: value });
  expect(first).toMatchObject({ alarms: [], stable: false });
  const second = guardStep(first.state, { ...healthy, [figure]: value });
  expect(second.alarms).toHaveLength(1);
  expect(second.alarms[0]).toContain(words);
  expect(second.alarms[0]).toContain('2 steps in a row');
  // A good step in between forgives.
  const between = guardStep(first.state, healthy);
  expect(guardStep(between.state, { ...healthy, [figure]: value }).alarms).toEqual([]);
});

test('what is bad does not become the normal', () => {
  let state = after(10);
  for (let i = 0; i < 30; i++) state = guardStep(state, { ...healthy, entropy: 0.01 }).state;
  expect(state.normal.entropy).toBeCloseTo(0.8);
});

test('comparisons wait for a normal; limits and broken numbers do not', () => {
  const cold = guardStep(newGuardState(), { ...healthy, entropy: 0.001 });
  expect(cold.stable).toBe(true);
  expect(guardStep(newGuardState(), { ...healthy, kl: 3 }).stable).toBe(false);
  expect(guardStep(newGuardState(), { entropy: Number.NaN }).alarms).toEqual([
    'entropy is not finite, 1 step',
  ]);
});

test('limits are settings', () => {
  const strict = guardSettings(
    loadConfig({ env: {}, flags: { 'loop.guardPatience': 1, 'loop.guardMaxKl': 0.01 } }).loop,
  );
  expect(judgeStep(newGuardState(), healthy, strict).alarms).toEqual([
    'KL to the reference 0.02 nats a token, above 0.01, 1 step',
  ]);
});
