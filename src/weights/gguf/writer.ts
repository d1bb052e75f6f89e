// Writes GGUF version 3: metadata as given, tensors in F32, F16, BF16 or Q8_0.

import { InvalidInputError, UnsupportedError } from '../../errors.js';
import { writePartFile } from '../part-file.js';
import { checkElements, type PlainType, plainBytes, type WrittenTensor } from '../plain-values.js';
import { quantise8, toQ8Bytes } from '../quantised/eight-bit.js';
import type { QuantisedMatrix } from '../quantised/matrix.js';
import { encodeEntry, encodeName, encodeUint } from './encode.js';
import type { GgufEntry } from './metadata.js';
import { blockLayout, DEFAULT_ALIGNMENT, MAGIC, MAX_DIMENSIONS, TENSOR_TYPE_IDS } from './types.js';

/** For Q8_0 the values may come quantised already: then they are stored as they are. */
export type GgufTensor =
  | WrittenTensor
  | WrittenTensor<'Q8_0'>
  | {
      readonly name: string;
      readonly type: 'Q8_0';
      readonly shape: readonly number[];
      readonly quantised: () => QuantisedMatrix;
    };

/**
 * @param entries metadata in order; `general.alignment` is ours to set (32) and is left out
 * @throws {InvalidInputError} a name twice, values that do not fill their shape, rows that do not fill blocks
 */
export async function writeGguf(
  path: string,
  entries: ReadonlyMap<string, GgufEntry>,
  tensors: readonly GgufTensor[],
): Promise<void> {
  const header = encodeHeader(entries, tensors);
  await writePartFile(path, async (file) => {
    await file.write(header);
    for (const tensor of tensors) {
      await file.pad(DEFAULT_ALIGNMENT);
      await file.write(tensorBytes(tensor));
    }
    await file.pad(DEFAULT_ALIGNMENT);
  });
}

function encodeHeader(entries: ReadonlyMap<string, GgufEntry>, tensors: readonly GgufTensor[]): Uint8Array {
  const kept = [...entries].filter(([key]) => key !== 'general.alignment');
  const parts: Uint8Array[] = [
    Buffer.from(MAGIC, 'latin1'),
    encodeUint(3, 4),
    encodeUint(tensors.length, 8),
    encodeUint(kept.length, 8),
  ];
  for (const [key, entry] of kept) parts.push(encodeName(key), encodeEntry(key, entry));
  const names = new Set<string>();
  let offset = 0;
  for (const tensor of tensors) {
    if (names.has(tensor.name)) throw new InvalidInputError(`tensor "${tensor.name}" stands twice`);
    names.add(tensor.name);
    parts.push(...encodeTensor(tensor, offset));
    offset += Math.ceil(byteLengthOf(tensor) / DEFAULT_ALIGNMENT) * DEFAULT_ALIGNMENT;
  }
  return Buffer.concat(parts);
}

function encodeTensor({ name, type, shape }: GgufTensor, offset: number): Uint8Array[] {
  if (shape.length > MAX_DIMENSIONS)
    throw new UnsupportedError(`tensor "${name}" has ${shape.length} dimensions, GGUF has ${MAX_DIMENSIONS}`);
  return [
    encodeName(name),
    encodeUint(shape.length, 4),
    ...[...shape].reverse().map((size) => encodeUint(size, 8)),
    encodeUint(TENSOR_TYPE_IDS.get(type) as number, 4),
    encodeUint(offset, 8),
  ];
}

function byteLengthOf({ name, type, shape }: GgufTensor): number {
  const { blockSize, blockBytes } = blockLayout(type);
  if ((shape.at(-1) ?? 1) % blockSize !== 0)
    throw new InvalidInputError(
      `tensor "${name}": rows of ${shape.at(-1)} values are no multiple of ${type}'s blocks of ${blockSize}`,
    );
  return (shape.reduce((product, size) => product * size, 1) / blockSize) * blockBytes;
}

function tensorBytes(tensor: GgufTensor): Uint8Array {
  if (tensor.type !== 'Q8_0') return plainBytes(tensor as WrittenTensor<PlainType>);
  const columns = tensor.shape.at(-1) ?? 1;
  const rows = tensor.shape.slice(0, -1).reduce((product, size) => product * size, 1);
  const matrix = 'quantised' in tensor ? tensor.quantised() : quantise8(checked(tensor), rows, columns);
  checkElements(tensor, matrix.rows * matrix.columns);
  return toQ8Bytes(matrix);
}

function checked(tensor: WrittenTensor<'Q8_0'>): Float32Array {
  const values = tensor.data();
  checkElements(tensor, values.length);
  return values;
}
