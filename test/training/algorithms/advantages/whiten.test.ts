import { whiten } from '../../../../src/training/algorithms/advantages/whiten.js';
import { difference, type Matrix, readLosses } from '../support.js';

interface WhitenCase {
  readonly case: string;
  readonly mask: Matrix;
  readonly x: Matrix;
  readonly ours: Matrix | null;
}

const cases = readLosses<WhitenCase>('whiten');

test.each(cases.filter((c) => c.ours !== null))('$case', (c) => {
  expect(difference(whiten(c.x, c.mask), c.ours as Matrix)).toBeLessThan(1e-6);
  const single = c.x.map((row) => Float32Array.from(row));
  expect(difference(whiten(single, c.mask), c.ours as Matrix)).toBeLessThan(1e-5 * 4);
});

test('one token becomes 0, no token nothing', () => {
  const lone = cases.find((c) => c.case === 'one-token') as WhitenCase;
  expect(whiten(lone.x, lone.mask)).toEqual([new Float64Array(3)]);
  expect(whiten([[5, 6]], [[0, 0]])).toEqual([new Float64Array(2)]);
  expect(whiten([], [])).toEqual([]);
});
