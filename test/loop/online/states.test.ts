import { LOOP_STATES, nextState, TRANSITIONS } from '../../../src/loop/online/states.js';

test('every state can be reached and left, and can be paused', () => {
  const reached = new Set(Object.values(TRANSITIONS).flatMap((events) => Object.values(events)));
  expect([...reached].sort()).toEqual([...LOOP_STATES].sort());
  for (const state of LOOP_STATES) {
    expect(Object.keys(TRANSITIONS[state]).length).toBeGreaterThan(0);
    expect(nextState(state, 'pause')).toBe('paused');
  }
});

test('a publication comes from the gate alone', () => {
  const ways = LOOP_STATES.filter((state) => Object.values(TRANSITIONS[state]).includes('publishing'));
  expect(ways).toEqual(['gating']);
});

test('what the table does not hold is refused with what would be possible', () => {
  expect(() => nextState('waiting', 'published')).toThrow(
    'the loop is waiting; expected one of begin, due, pause, got "published"',
  );
});
