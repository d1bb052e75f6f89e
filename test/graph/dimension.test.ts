import fc from 'fast-check';
import { broadcastOf, productOf, quotientOf } from '../../src/graph/dimension.js';

const name = fc.constantFrom('B', 'S', 'T', 'R_qkv');
const dimension = fc.oneof(
  fc.integer({ min: 1, max: 9 }),
  name,
  fc.tuple(name, name).map((pair) => productOf(pair)),
);

test('products do not depend on order or grouping', () => {
  fc.assert(
    fc.property(fc.array(dimension), fc.array(dimension), (a, b) => {
      expect(productOf([productOf(a), productOf(b)])).toBe(productOf([...b, ...a]));
    }),
  );
  expect(productOf([2, 'S', 3, 'B'])).toBe('6*B*S');
  expect(productOf([])).toBe(1);
});

test('a quotient undoes a product', () => {
  fc.assert(
    fc.property(fc.array(dimension), dimension, (a, b) => {
      expect(quotientOf(productOf([...a, b]), b)).toBe(productOf(a));
    }),
  );
});

test.each([
  [7, 2],
  ['B', 'S'],
  ['B', 2],
  [6, 'B'],
  [4, 0],
])('%s / %s does not come out even', (total, part) => {
  expect(quotientOf(total, part)).toBeNull();
});

test('broadcasting follows ONNX', () => {
  expect(broadcastOf(['B', 1, 4], ['S', 1])).toEqual(['B', 'S', 4]);
  expect(broadcastOf([], ['B'])).toEqual(['B']);
  expect(broadcastOf(['B', 2], ['S', 2])).toBeNull();
  expect(broadcastOf([3], [2])).toBeNull();
});
