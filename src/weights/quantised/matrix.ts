// Weight matrices in blocks of 32 values along the input axis, laid out as onnxruntime's MatMulNBits reads them.

import { InvalidInputError } from '../../errors.js';

/** Values that share one scale; also the block of GGUF's Q8_0. */
export const BLOCK_SIZE = 32;

/**
 * W [rows, columns] as q: W = scale (q - zeroPoint). B = ceil(columns / 32) blocks a row; what a last block holds
 * beyond the columns stands for 0.
 */
export interface QuantisedMatrix {
  readonly bits: 4 | 8;
  readonly rows: number;
  readonly columns: number;
  readonly blocks: number;
  /** uint8 [rows, B, 32 bits / 8]; two 4-bit values a byte, the first in the low nibble. */
  readonly values: Uint8Array;
  /** f32 [rows, B] */
  readonly scales: Float32Array;
  /** 4 bits: uint8 [rows, ceil(B / 2)], two a byte, low nibble first. null: the middle of the range (8 or 128). */
  readonly zeroPoints: Uint8Array | null;
}

/** Bytes of `QuantisedMatrix.values` for one block. */
export const blockBytes = (bits: 4 | 8): number => (BLOCK_SIZE * bits) / 8;

/** @throws {InvalidInputError} the values do not fill [rows, columns] */
export function blocksOf(values: Float32Array, rows: number, columns: number): number {
  if (values.length !== rows * columns || columns < 1)
    throw new InvalidInputError(`expected ${rows} x ${columns} values, found ${values.length}`);
  return Math.ceil(columns / BLOCK_SIZE);
}

/** Zero point of one block. */
function zeroPointOf(matrix: QuantisedMatrix, row: number, block: number): number {
  if (matrix.zeroPoints === null) return 2 ** (matrix.bits - 1);
  if (matrix.bits === 8) return matrix.zeroPoints[row * matrix.blocks + block] as number;
  const byte = matrix.zeroPoints[row * Math.ceil(matrix.blocks / 2) + (block >> 1)] as number;
  return (byte >> ((block & 1) * 4)) & 15;
}

/** f32 [rows, columns], row major: the values that the quantised matrix stands for. */
export function dequantiseMatrix(matrix: QuantisedMatrix): Float32Array {
  const { bits, rows, columns, blocks, values, scales } = matrix;
  const out = new Float32Array(rows * columns);
  const bytes = blockBytes(bits);
  for (let row = 0; row < rows; row += 1)
    for (let block = 0; block < blocks; block += 1) {
      const scale = scales[row * blocks + block] as number;
      const zero = zeroPointOf(matrix, row, block);
      const from = (row * blocks + block) * bytes;
      const to = row * columns + block * BLOCK_SIZE;
      const count = Math.min(BLOCK_SIZE, columns - block * BLOCK_SIZE);
      for (let i = 0; i < count; i += 1) {
        const q =
          bits === 8
            ? (values[from + i] as number)
            : ((values[from + (i >> 1)] as number) >> ((i & 1) * 4)) & 15;
        out[to + i] = scale * (q - zero);
      }
    }
  return out;
}
