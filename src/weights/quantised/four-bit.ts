// 4-bit blocks with a zero point each: of the zero points near the block's own range, and the middle one that a
// symmetric form would have, the one that loses least is kept, with the scale that fits it best.

import { InvalidInputError } from '../../errors.js';
import { BLOCK_SIZE, blockBytes, blocksOf, type QuantisedMatrix } from './matrix.js';

const LARGEST = 15;
const MIDDLE = 8;

/**
 * W = scale (q - zeroPoint), q and zeroPoint in 0 to 15, per block of 32; scale and zero point are chosen to
 * lose the least squared error among the candidates of `fitBlock`.
 * @param values f32 [rows, columns], row major
 * @throws {InvalidInputError} a value that is not finite
 */
export function quantise4(values: Float32Array, rows: number, columns: number): QuantisedMatrix {
  const blocks = blocksOf(values, rows, columns);
  const packed = new Uint8Array(rows * blocks * blockBytes(4));
  const scales = new Float32Array(rows * blocks);
  const rowZeros = Math.ceil(blocks / 2);
  const zeroPoints = new Uint8Array(rows * rowZeros);
  const block = new Float64Array(BLOCK_SIZE);
  const best = createFit();
  const trial = createFit();
  for (let row = 0; row < rows; row += 1)
    for (let at = 0; at < blocks; at += 1) {
      const from = row * columns + at * BLOCK_SIZE;
      const count = Math.min(BLOCK_SIZE, columns - at * BLOCK_SIZE);
      for (let i = 0; i < BLOCK_SIZE; i += 1) block[i] = i < count ? (values[from + i] as number) : 0;
      fitBlock(block, best, trial);
      if (!Number.isFinite(best.scale))
        throw new InvalidInputError(`row ${row}, block ${at}: weights are not finite`);
      scales[row * blocks + at] = best.scale;
      const zeroAt = row * rowZeros + (at >> 1);
      zeroPoints[zeroAt] = (zeroPoints[zeroAt] as number) | (best.zero << ((at & 1) * 4));
      pack(block, best, packed, (row * blocks + at) * blockBytes(4));
    }
  return { bits: 4, rows, columns, blocks, values: packed, scales, zeroPoints };
}

/** A way to quantise one block. Reused from block to block: there are millions. */
interface Fit {
  scale: number;
  zero: number;
  /** Squared error. */
  loss: number;
  /** Scale that would lose least with the same integers. */
  bestScale: number;
}

const createFit = (): Fit => ({ scale: 0, zero: MIDDLE, loss: 0, bestScale: 0 });

/** Zero always has a value of its own, since the range is widened to hold it. */
function fitBlock(block: Float64Array, best: Fit, trial: Fit): void {
  let low = 0;
  let high = 0;
  let sum = 0;
  for (let i = 0; i < BLOCK_SIZE; i += 1) {
    const value = block[i] as number;
    sum += value;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  best.loss = Number.POSITIVE_INFINITY;
  best.zero = MIDDLE;
  // A sum that is not finite tells of a value that is not; the scale says so, else 0 stands for all zeros.
  best.scale = sum * 0;
  if (low === high || !Number.isFinite(sum)) return;
  const spread = (high - low) / LARGEST;
  const near = Math.round(-low / spread);
  // The symmetric candidate maps the value of largest magnitude onto -8, the longer side of the range.
  tryCandidate(block, (high > -low ? high : low) / -MIDDLE, MIDDLE, best, trial);
  for (let zero = Math.max(0, near - 1); zero <= Math.min(LARGEST, near + 1); zero += 1)
    tryCandidate(block, spread, zero, best, trial);
}

/** Rounds with this scale, then once more with the scale that fits those integers best. */
function tryCandidate(block: Float64Array, scale: number, zero: number, best: Fit, trial: Fit): void {
  evaluate(block, scale, zero, trial);
  keepBetter(best, trial);
  if (trial.bestScale === 0) return;
  evaluate(block, trial.bestScale, zero, trial);
  keepBetter(best, trial);
}

function keepBetter(best: Fit, trial: Fit): void {
  if (!(trial.loss < best.loss)) return;
  best.scale = trial.scale;
  best.zero = trial.zero;
  best.loss = trial.loss;
}

function evaluate(block: Float64Array, exactScale: number, zero: number, fit: Fit): void {
  const scale = Math.fround(exactScale);
  const inverse = 1 / scale;
  let loss = 0;
  let cross = 0;
  let square = 0;
  for (let i = 0; i < BLOCK_SIZE; i += 1) {
    const value = block[i] as number;
    const step = level(value * inverse, zero) - zero;
    const error = value - scale * step;
    loss += error * error;
    cross += value * step;
    square += step * step;
  }
  fit.scale = scale;
  fit.zero = zero;
  fit.loss = scale === 0 ? Number.POSITIVE_INFINITY : loss;
  fit.bestScale = square === 0 ? 0 : Math.fround(cross / square);
}

/** Nearest of 0 to 15; what lies below is cut before the truncation, which rounds towards zero. */
function level(steps: number, zero: number): number {
  const shifted = steps + zero + 0.5;
  if (!(shifted > 0)) return 0;
  return shifted >= LARGEST ? LARGEST : shifted | 0;
}

function pack(block: Float64Array, { scale, zero }: Fit, packed: Uint8Array, at: number): void {
  const inverse = scale === 0 ? 0 : 1 / scale;
  for (let i = 0; i < BLOCK_SIZE; i += 2) {
    const low = level((block[i] as number) * inverse, zero);
    const high = level((block[i + 1] as number) * inverse, zero);
    packed[at + (i >> 1)] = low | (high << 4);
  }
}
