import { counted, unitAfter } from '../../src/cli/counted.js';

test.each([
  [0, '0 answers'],
  [1, '1 answer'],
  [2, '2 answers'],
])('%i answers', (count, text) => {
  expect(counted(count, 'answer')).toBe(text);
});

test('a plural of its own', () => {
  expect([1, 2].map((count) => counted(count, 'search', 'searches'))).toEqual(['1 search', '2 searches']);
});

test.each([
  [1, 'passages', 'passage'],
  [1, 'passages at 3/s', 'passage at 3/s'],
  [1, 'trajectories', 'trajectory'],
  [2, 'trajectories', 'trajectories'],
])('%i %s', (count, unit, text) => {
  expect(unitAfter(count, unit)).toBe(text);
});
