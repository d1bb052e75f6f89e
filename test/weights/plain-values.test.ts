import { plainBytes } from '../../src/weights/plain-values.js';

const tensor = (type: 'F32' | 'F16' | 'BF16', ...values: number[]) => ({
  name: 'layer.weight',
  type,
  shape: [values.length],
  data: () => Float32Array.from(values),
});

test('a number that a type cannot hold is refused, not written as infinity', () => {
  expect(plainBytes(tensor('F16', 65504, -65504, 65519, 1e-9))).toHaveLength(8);
  expect(() => plainBytes(tensor('F16', 1, -65520))).toThrow(
    'tensor "layer.weight": -65520 at element 1 is too large for F16; expected F32',
  );
  expect(plainBytes(tensor('BF16', 65520, 3e38))).toHaveLength(4);
  expect(() => plainBytes(tensor('BF16', 3.4e38))).toThrow(/is too large for BF16/);
  expect(plainBytes(tensor('F32', 3.4e38))).toHaveLength(4);
});
