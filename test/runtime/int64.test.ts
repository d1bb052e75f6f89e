import fc from 'fast-check';
import { int64, numbers, writeInt64 } from '../../src/runtime/index.js';

test('number[], Int32Array and BigInt64Array all work', () => {
  const wanted = new BigInt64Array([1n, -2n, 2147483648n]);
  expect(int64([1, -2, 2147483648])).toEqual(wanted);
  expect(int64(new Int32Array([1, -2]))).toEqual(wanted.slice(0, 2));
  expect(int64(wanted)).toEqual(wanted);
  expect(int64([])).toHaveLength(0);
});

test('what goes in comes out', () => {
  fc.assert(
    fc.property(fc.array(fc.maxSafeInteger()), (values) => expect(numbers(int64(values))).toEqual(values)),
  );
});

test('written at an offset', () => {
  const target = new BigInt64Array(4);
  writeInt64(target, [7, 8], 2);
  expect([...target]).toEqual([0n, 0n, 7n, 8n]);
  expect(() => writeInt64(target, [1, 2], 3)).toThrow('2 values at 3 do not fit into 4 elements');
});

test.each([1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])('%p is refused', (value) => {
  expect(() => int64([0, value])).toThrow(`value ${value} at 1`);
});

test('an int64 beyond 2^53 is refused as number', () => {
  expect(() => numbers(new BigInt64Array([2n ** 60n]))).toThrow(/too large/);
});
