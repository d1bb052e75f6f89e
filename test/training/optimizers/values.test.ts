// Values that no engine would serve reject the update that made them.

import { NonFiniteError } from '../../../src/errors.js';
import { checkValues } from '../../../src/training/optimizers/index.js';

const values = (...of: number[]): Float32Array => Float32Array.from(of);

test('values up to their limit pass, of either sign', () => {
  expect(() =>
    checkValues([
      { name: 'a', values: values(-8, 8, 0), largest: 8 },
      { name: 'whole', values: values(3e38, -3e38, 1) },
    ]),
  ).not.toThrow();
});

test.each([
  ['too large', 9, /parameter b: entry 1 has grown to 9; the engine takes at most 8/],
  ['too small', -9, /parameter b: entry 1 has grown to -9/],
  ['NaN', Number.NaN, /parameter b: entry 1 is not finite \(NaN\)/],
  ['infinite', Number.NEGATIVE_INFINITY, /entry 1 is not finite \(-Infinity\)/],
])('%s: the parameter and the entry are named', (_, bad, message) => {
  const check = (): void =>
    checkValues([
      { name: 'a', values: values(100), largest: 100 },
      { name: 'b', values: values(1, bad, 2), largest: 8 },
    ]);
  expect(check).toThrow(NonFiniteError);
  expect(check).toThrow(message);
});
