// 8-bit symmetric blocks whose scales are half precision numbers, so that the same values can be written as
// GGUF's Q8_0 bit for bit.

import { InvalidInputError } from '../../errors.js';
import { floatToHalf, halfToFloat } from '../half.js';
import { BLOCK_SIZE, blocksOf, type QuantisedMatrix } from './matrix.js';

const MIDDLE = 128;
/** Both signs reach the same magnitude; -128 is not used. */
const LARGEST = 127;

/** Bytes of a Q8_0 block: half scale, 32 signed values. */
const Q8_BLOCK_BYTES = 34;

/**
 * scale = half(max |w| / 127), q = clamp(round(w / scale), -127, 127) + 128. A matrix that
 * came from Q8_0 as ggml writes it (every block reaches 127) keeps its values exactly.
 * @param values f32 [rows, columns], row major
 * @throws {InvalidInputError} a value that is not finite, or beyond what a half precision scale reaches
 */
export function quantise8(values: Float32Array, rows: number, columns: number): QuantisedMatrix {
  const blocks = blocksOf(values, rows, columns);
  const quantised = new Uint8Array(rows * blocks * BLOCK_SIZE).fill(MIDDLE);
  const scales = new Float32Array(rows * blocks);
  for (let row = 0; row < rows; row += 1)
    for (let block = 0; block < blocks; block += 1) {
      const from = row * columns + block * BLOCK_SIZE;
      const to = (row * blocks + block) * BLOCK_SIZE;
      const count = Math.min(BLOCK_SIZE, columns - block * BLOCK_SIZE);
      const scale = halfToFloat(floatToHalf(largestMagnitude(values, from, count) / LARGEST));
      if (!Number.isFinite(scale))
        throw new InvalidInputError(`row ${row}, block ${block}: weights are not finite or too large`);
      scales[row * blocks + block] = scale;
      const inverse = scale === 0 ? 0 : 1 / scale;
      for (let i = 0; i < count; i += 1)
        quantised[to + i] = MIDDLE + nearest((values[from + i] as number) * inverse);
    }
  return { bits: 8, rows, columns, blocks, values: quantised, scales, zeroPoints: null };
}

/** NaN when a value is not finite: a sum of so few finite numbers cannot overflow. */
function largestMagnitude(values: Float32Array, from: number, count: number): number {
  let largest = 0;
  let sum = 0;
  for (let i = from; i < from + count; i += 1) {
    const value = values[i] as number;
    const magnitude = value < 0 ? -value : value;
    sum += magnitude;
    if (magnitude > largest) largest = magnitude;
  }
  return Number.isFinite(sum) ? largest : Number.NaN;
}

/** Halves away from zero, as ggml rounds; a scale that was rounded down can put the largest value past the end. */
function nearest(steps: number): number {
  let magnitude = ((steps < 0 ? -steps : steps) + 0.5) | 0;
  if (magnitude > LARGEST) magnitude = LARGEST;
  return steps < 0 ? -magnitude : magnitude;
}

/**
 * The matrix as Q8_0 bytes: the very same values.
 * @throws {InvalidInputError} not a symmetric 8-bit matrix, or columns that do not fill whole blocks
 */
export function toQ8Bytes(matrix: QuantisedMatrix): Uint8Array<ArrayBuffer> {
  if (matrix.bits !== 8 || matrix.zeroPoints !== null)
    throw new InvalidInputError('only a symmetric 8-bit matrix can be written as Q8_0');
  if (matrix.columns % BLOCK_SIZE !== 0)
    throw new InvalidInputError(
      `Q8_0 rows are multiples of ${BLOCK_SIZE}, this matrix has ${matrix.columns} columns`,
    );
  const count = matrix.rows * matrix.blocks;
  const bytes = new Uint8Array(count * Q8_BLOCK_BYTES);
  for (let block = 0; block < count; block += 1) {
    const at = block * Q8_BLOCK_BYTES;
    const half = floatToHalf(matrix.scales[block] as number);
    bytes[at] = half & 255;
    bytes[at + 1] = half >> 8;
    for (let i = 0; i < BLOCK_SIZE; i += 1)
      bytes[at + 2 + i] = (matrix.values[block * BLOCK_SIZE + i] as number) - MIDDLE;
  }
  return bytes;
}
