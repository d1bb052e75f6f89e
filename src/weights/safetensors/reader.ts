import { FileFormatError, NotFoundError, UnsupportedError } from '../../errors.js';
import { bfloat16BytesToFloat, halfBytesToFloat } from '../half.js';
import { openRangedFile, type RangedFile } from '../ranged-file.js';
import type { TensorInfo, TensorSource } from '../tensor-source.js';
import { readSafetensorsHeader, type SafetensorsHeader } from './header.js';

/** Bytes read at once while converting, so that a large half tensor is not held twice. */
const SLICE_BYTES = 1 << 24;

export interface SafetensorsSource extends TensorSource {
  /** Names and types of integer tensors, which are not read. */
  readonly skipped: ReadonlyMap<string, string>;
}

/**
 * Opens one safetensors file. F32, F16 and BF16 tensors are readable; integer tensors are left out.
 * @throws {FileFormatError | UnsupportedError} see `readSafetensorsHeader`
 */
export function openSafetensorsFile(path: string): SafetensorsSource {
  const file = openRangedFile(path);
  let header: SafetensorsHeader;
  try {
    header = readSafetensorsHeader(file);
  } catch (error) {
    file.close();
    throw error;
  }
  const find = (name: string): TensorInfo => findTensor(header, path, name);
  return {
    format: 'safetensors',
    tensors: header.tensors,
    metadata: header.metadata,
    skipped: header.skipped,
    readFloat32: (name) => readFloats(file, find(name)),
    readRaw: (name) => {
      const tensor = find(name);
      return file.read(tensor.byteOffset, tensor.byteLength, `tensor "${name}"`);
    },
    close: () => file.close(),
  };
}

function findTensor(header: SafetensorsHeader, path: string, name: string): TensorInfo {
  const tensor = header.tensors.get(name);
  if (tensor) return tensor;
  const type = header.skipped.get(name);
  if (type !== undefined)
    throw new UnsupportedError(`${path}: tensor "${name}" has type ${type}; only F32, F16 and BF16 are read`);
  throw new NotFoundError(`${path} has no tensor "${name}"`);
}

function readFloats(file: RangedFile, tensor: TensorInfo): Float32Array {
  const elements = tensor.byteLength / (tensor.type === 'F32' ? 4 : 2);
  const what = `tensor "${tensor.name}"`;
  if (tensor.byteOffset + tensor.byteLength > file.size)
    throw new FileFormatError(`${file.path}: ${what} ends past the end of the file`);
  const values = new Float32Array(elements);
  if (tensor.type === 'F32') {
    file.readInto(new Uint8Array(values.buffer), tensor.byteOffset, what);
    return values;
  }
  const convert = tensor.type === 'F16' ? halfBytesToFloat : bfloat16BytesToFloat;
  for (let done = 0; done < tensor.byteLength; done += SLICE_BYTES) {
    const length = Math.min(SLICE_BYTES, tensor.byteLength - done);
    const bytes = file.read(tensor.byteOffset + done, length, what);
    convert(bytes, values.subarray(done / 2, (done + length) / 2));
  }
  return values;
}
