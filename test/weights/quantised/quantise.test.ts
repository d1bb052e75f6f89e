import fc from 'fast-check';
import { InvalidInputError } from '../../../src/errors.js';
import { floatToHalf, halfToFloat } from '../../../src/weights/half.js';
import { dequantiseMatrix, quantise4, quantise8 } from '../../../src/weights/index.js';

const matrix = fc
  .record({
    rows: fc.integer({ min: 1, max: 4 }),
    columns: fc.integer({ min: 1, max: 100 }),
    scale: fc.constantFrom(1e-3, 1, 50),
    shift: fc.constantFrom(0, 0.8, -3),
  })
  .chain(({ rows, columns, scale, shift }) =>
    fc
      .array(fc.double({ min: -1, max: 1, noNaN: true }), {
        minLength: rows * columns,
        maxLength: rows * columns,
      })
      .map((list) => ({
        rows,
        columns,
        values: Float32Array.from(list, (value) => (value + shift) * scale),
      })),
  );

/** Calls `check` with the values and what they became, block by block. */
function forBlocks(
  { rows, columns, values }: { rows: number; columns: number; values: Float32Array },
  back: Float32Array,
  check: (before: Float32Array, after: Float32Array) => void,
): void {
  for (let row = 0; row < rows; row += 1)
    for (let at = 0; at < columns; at += 32) {
      const [from, to] = [row * columns + at, row * columns + Math.min(columns, at + 32)];
      check(values.subarray(from, to), back.subarray(from, to));
    }
}

const peak = (values: Float32Array): number => Math.max(...Array.from(values, Math.abs));
const squaredError = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  Array.from(a).reduce((sum, value, i) => sum + (value - (b[i] as number)) ** 2, 0);

describe('8 bits', () => {
  test("the layout is MatMulNBits' and scales are half precision numbers", () => {
    fc.assert(
      fc.property(matrix, ({ rows, columns, values }) => {
        const result = quantise8(values, rows, columns);
        expect(result.blocks).toBe(Math.ceil(columns / 32));
        expect(result.values).toHaveLength(rows * result.blocks * 32);
        expect(result.scales).toHaveLength(rows * result.blocks);
        expect(result.zeroPoints).toBeNull();
        for (const scale of result.scales) expect(halfToFloat(floatToHalf(scale))).toBe(scale);
        // What lies beyond the columns stands for zero.
        for (let row = 0; row < rows; row += 1)
          for (let i = columns; i < result.blocks * 32; i += 1)
            expect(result.values[row * result.blocks * 32 + i]).toBe(128);
      }),
    );
  });

  test('no value moves by more than half a step and what half scales lose', () => {
    fc.assert(
      fc.property(matrix, (input) => {
        const back = dequantiseMatrix(quantise8(input.values, input.rows, input.columns));
        forBlocks(input, back, (before, after) => {
          const step = peak(before) / 127;
          // What a half precision scale is off by, normal or subnormal, moves the largest value 127 times.
          const scaleError = Math.max(step * 2 ** -11, 2 ** -25);
          const worst = Math.max(...before.map((value, i) => Math.abs(value - (after[i] as number))));
          expect(worst).toBeLessThanOrEqual((step / 2 + 127.5 * scaleError) * 1.00001);
        });
      }),
    );
  });

  test('quantising again changes nothing while scales are normal half precision numbers', () => {
    fc.assert(
      fc.property(matrix, ({ rows, columns, values }) => {
        const once = quantise8(values, rows, columns);
        fc.pre(once.scales.every((scale) => scale === 0 || scale >= 2 ** -14));
        const twice = quantise8(dequantiseMatrix(once), rows, columns);
        expect(dequantiseMatrix(twice)).toEqual(dequantiseMatrix(once));
      }),
    );
  });

  test('rounding is half away from zero, by hand', () => {
    const values = new Float32Array(32);
    values.set([127, 0.5, -0.5, 1.4, -1.6, -127]);
    const { values: q, scales } = quantise8(values, 1, 32);
    expect([...scales]).toEqual([1]);
    expect([...q.subarray(0, 7)]).toEqual([255, 129, 127, 129, 126, 1, 128]);
  });

  test('an all-zero block stays zero', () => {
    expect(dequantiseMatrix(quantise8(new Float32Array(64), 1, 64))).toEqual(new Float32Array(64));
  });
});

describe('4 bits', () => {
  test("the layout is MatMulNBits': low nibble first, zero points packed per row", () => {
    // 96 columns: three blocks a row, so that a row's zero points end in a half-filled byte.
    const values = new Float32Array(2 * 96).map((_, i) => (i % 96 < 32 ? i % 16 : 0));
    const result = quantise4(values, 2, 96);
    expect(result.values).toHaveLength(2 * 3 * 16);
    expect(result.zeroPoints).toEqual(Uint8Array.of(0x80, 0x08, 0x80, 0x08));
    expect(result.scales[0]).toBe(1);
    expect([...result.values.subarray(0, 4)]).toEqual([0x10, 0x32, 0x54, 0x76]);
    expect(dequantiseMatrix(result)).toEqual(values);
  });

  test('no block loses more than the plain symmetric and asymmetric forms', () => {
    fc.assert(
      fc.property(matrix, (input) => {
        const back = dequantiseMatrix(quantise4(input.values, input.rows, input.columns));
        forBlocks(input, back, (before, after) => {
          const bound = Math.min(
            squaredError(before, symmetric(before)),
            squaredError(before, asymmetric(before)),
          );
          // The scale is a float32 number, theirs here are not rounded.
          const rounding = 32 * (peak(before) * 2 ** -22) ** 2 + 1e-70;
          expect(squaredError(before, after)).toBeLessThanOrEqual(bound * 1.0001 + rounding);
        });
      }),
    );
  });

  test('zero is kept exactly', () => {
    fc.assert(
      fc.property(matrix, ({ rows, columns, values }) => {
        values[0] = 0;
        expect(Math.abs(dequantiseMatrix(quantise4(values, rows, columns))[0] as number)).toBe(0);
      }),
    );
  });
});

/** d = the value of largest magnitude over -8, q in -8 to 7. */
function symmetric(values: Float32Array): number[] {
  const largest = values.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a), 0);
  const d = largest / -8;
  return Array.from(values, (value) => (d === 0 ? 0 : d * Math.max(-8, Math.min(7, Math.round(value / d)))));
}

/** Range of the block with zero in 15 steps. */
function asymmetric(values: Float32Array): number[] {
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const d = (high - low) / 15;
  if (d === 0) return Array.from(values, () => 0);
  const zero = Math.round(-low / d);
  return Array.from(values, (value) => d * (Math.max(0, Math.min(15, Math.round(value / d) + zero)) - zero));
}

test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
  'a weight that is %d is refused',
  (bad) => {
    for (const place of [0, 31, 40]) {
      const values = new Float32Array(64).fill(1);
      values[place] = bad;
      expect(() => quantise8(values, 1, 64)).toThrow(InvalidInputError);
      expect(() => quantise4(values, 1, 64)).toThrow(/row 0, block [01]: weights are not finite/);
    }
    expect(() => quantise8(new Float32Array(10), 2, 6)).toThrow(/2 x 6 values, found 10/);
  },
);
