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
 * @throws {InvalidInputError} the values do not fill the shape
 */
export function plainBytes(tensor: WrittenTensor): Uint8Array {
  const values = tensor.data();
  checkElements(tensor, values.length);
  if (tensor.type === 'F32') return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const round = tensor.type === 'F16' ? floatToHalf : floatToBfloat16;
  return new Uint8Array(Uint16Array.from(values, round).buffer);
}

export function checkElements(tensor: { name: string; shape: readonly number[] }, found: number): void {
  const expected = elementsOf(tensor.shape);
  if (found !== expected)
    throw new InvalidInputError(
      `tensor "${tensor.name}": [${tensor.shape.join(', ')}] needs ${expected} values, found ${found}`,
    );
}
