import fc from 'fast-check';
import {
  bfloat16BytesToFloat,
  floatToBfloat16,
  floatToHalf,
  halfBytesToFloat,
  halfToFloat,
} from '../../src/weights/half.js';

const float32 = fc.float({ noNaN: true });

test('every half pattern survives the way through float32', () => {
  for (let bits = 0; bits < 65536; bits += 1) {
    const value = halfToFloat(bits);
    if (Number.isNaN(value)) expect(Number.isNaN(halfToFloat(floatToHalf(value)))).toBe(true);
    else if (floatToHalf(value) !== bits) throw new Error(`pattern ${bits} became ${floatToHalf(value)}`);
  }
});

test.each([
  [0x3c00, 1],
  [0x8000, -0],
  [0x7c00, Number.POSITIVE_INFINITY],
  [0xfc00, Number.NEGATIVE_INFINITY],
  [0x0001, 2 ** -24],
  [0x03ff, 1023 * 2 ** -24],
  [0x0400, 2 ** -14],
  [0x7bff, 65504],
  [0x3555, 0.333251953125],
])('half pattern %i is %d', (bits, value) => {
  expect(halfToFloat(bits)).toBe(value);
  expect(floatToHalf(value)).toBe(bits);
});

/** Distance from x to what a pattern means; overflow counts from 2^16, as rounding does. */
const distance = (x: number, bits: number): number => {
  const value = halfToFloat(bits);
  return Math.abs(x - (Number.isFinite(value) ? value : Math.sign(value) * 65536));
};

test('halves are nearest, ties go to even', () => {
  fc.assert(
    fc.property(fc.oneof(float32, fc.double({ min: -70000, max: 70000, noNaN: true })), (value) => {
      const x = Math.fround(value);
      fc.pre(Number.isFinite(x) && Math.abs(x) < 65536);
      const bits = floatToHalf(x);
      const own = distance(x, bits);
      for (const other of [bits - 1, bits + 1]) {
        if ((other & 0x8000) !== (bits & 0x8000) || (other & 0x7fff) > 0x7c00) continue;
        const theirs = distance(x, other);
        expect(own < theirs || (own === theirs && (bits & 1) === 0)).toBe(true);
      }
    }),
    { numRuns: 2000 },
  );
});

test('bfloat16 is nearest, ties go to even, NaN stays NaN', () => {
  const back = (bits: number): number => {
    const out = new Float32Array(1);
    bfloat16BytesToFloat(Uint8Array.of(bits & 255, bits >> 8), out);
    return out[0] as number;
  };
  fc.assert(
    fc.property(float32, (x) => {
      const bits = floatToBfloat16(x);
      const value = back(bits);
      fc.pre(Number.isFinite(x) && Number.isFinite(value));
      for (const other of [back(bits - 1), back(bits + 1)]) {
        if (!Number.isFinite(other) || Math.sign(other) * Math.sign(value) < 0) continue;
        const [own, theirs] = [Math.abs(x - value), Math.abs(x - other)];
        expect(own < theirs || (own === theirs && (bits & 1) === 0)).toBe(true);
      }
    }),
  );
  expect(back(floatToBfloat16(Number.NaN))).toBeNaN();
  expect(floatToBfloat16(Number.POSITIVE_INFINITY)).toBe(0x7f80);
});

test('half bytes are read at any offset', () => {
  const out = new Float32Array(2);
  halfBytesToFloat(Uint8Array.of(9, 0x00, 0x3c, 0x00, 0xc0).subarray(1), out);
  expect([...out]).toEqual([1, -2]);
});
