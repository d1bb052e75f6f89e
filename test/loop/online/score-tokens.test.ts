// The distance of two policies on sampled tokens, by hand.

import { sampledKl } from '../../../src/loop/online/score-tokens.js';

const k3 = (own: number, other: number): number => Math.exp(other - own) - (other - own) - 1;

test('a mean over sampled tokens, of all records alike, whichever policy is the likelier one', () => {
  const long = { own: [-1, -2, -3, -0.5], other: [-1.5, -1.25, -3, -0.5], mask: [1, 1, 1, 1] };
  const short = { own: [-0.25], other: [-2.25], mask: [1] };
  const expected = (k3(-1, -1.5) + k3(-2, -1.25) + k3(-0.25, -2.25)) / 5;
  expect(sampledKl([long, short])).toBeCloseTo(expected, 12);
  // Not the same the other way round.
  expect(sampledKl([{ own: short.other, other: short.own, mask: [1] }])).toBeCloseTo(k3(-2.25, -0.25), 12);
});

test('tokens that the policy did not sample do not count; without any the distance is no number', () => {
  const record = { own: [0, -1], other: [Number.NaN, -2], mask: [0, 1] };
  expect(sampledKl([record])).toBeCloseTo(k3(-1, -2), 12);
  expect(sampledKl([{ ...record, mask: [1, 1] }])).toBeNaN();
  expect(sampledKl([{ ...record, mask: [0, 0] }])).toBeNaN();
});
