import { InvalidInputError } from '../errors.js';
import { floatToBfloat16, floatToHalf } from './half.js';

/** Types that hold one value an element. */
export type PlainType = 'F32' | 'F16' | 'BF16';

export const PLAIN_BYTES: Readonly<Record<PlainType, number>> = { F32: 4, F16: 2, BF16: 2 };

/** A tensor to be written; `data` is called once, when its turn comes, so that not all need to be held. */
export interface WrittenTensor<Type extends string = PlainType> {
  readonly name: string;
  readonly type: Type;
  /** Row major, outermost first. */
  readonly shape: readonly number[];
  /** The values in float32. */
  readonly data: () => Float32Array;
}

export const elementsOf = (shape: readonly number[]): number =>
  shape.reduce((product, size) => product * size, 1);

/**
 * Little-endian bytes of a tensor's values, rounded to its type.
 * @throws {InvalidInputError} the values do not fill the shape, or one is too large for the type
 */
export function plainBytes(tensor: WrittenTensor): Uint8Array {
  const values = tensor.data();
  checkElements(tensor, values.length);
  if (tensor.type === 'F32') return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const half = tensor.type === 'F16';
  const rounded = Uint16Array.from(values, half ? floatToHalf : floatToBfloat16);
  // Of numbers that are not finite all bits of the exponent are set.
  const exponent = half ? 0x7c00 : 0x7f80;
  const lost = rounded.findIndex((bits, i) => (bits & exponent) === exponent && Number.isFinite(values[i]));
  if (lost >= 0)
    throw new InvalidInputError(
      `tensor "${tensor.name}": ${values[lost]} at element ${lost} is too large for ${tensor.type}; expected F32`,
    );
  return new Uint8Array(rounded.buffer);
}

export function checkElements(tensor: { name: string; shape: readonly number[] }, found: number): void {
  const expected = elementsOf(tensor.shape);
  if (found !== expected)
    throw new InvalidInputError(
      `tensor "${tensor.name}": [${tensor.shape.join(', ')}] needs ${expected} values, found ${found}`,
    );
}
