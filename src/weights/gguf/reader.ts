import { NotFoundError } from '../../errors.js';
import { openRangedFile, type RangedFile } from '../ranged-file.js';
import type { TensorInfo, TensorSource } from '../tensor-source.js';
import { DEQUANTISE } from './dequantise.js';
import { type GgufHeader, readGgufHeader } from './header.js';
import type { GgufEntry } from './metadata.js';
import { blockLayout } from './types.js';

/** Blocks converted at once, so that a large tensor's bytes are not held beside its values. */
const SLICE_BLOCKS = 1 << 16;

export interface GgufSource extends TensorSource {
  /** Metadata with the types it has in the file, as `writeGguf` takes it. */
  readonly entries: ReadonlyMap<string, GgufEntry>;
}

/**
 * Opens a GGUF file of version 2 or 3; shapes come out row major. Values are as stored: in Llama files the rows
 * of attn_q and attn_k are still in the order that llama.cpp's rotary embedding wants.
 * @throws {FileFormatError | UnsupportedError} see `readGgufHeader`
 */
export function openGguf(path: string): GgufSource {
  const file = openRangedFile(path);
  let header: GgufHeader;
  try {
    header = readGgufHeader(file);
  } catch (error) {
    file.close();
    throw error;
  }
  const find = (name: string): TensorInfo => {
    const tensor = header.tensors.get(name);
    if (!tensor) throw new NotFoundError(`${path} has no tensor "${name}"`);
    return tensor;
  };
  return {
    format: 'gguf',
    tensors: header.tensors,
    metadata: new Map([...header.metadata].map(([key, { value }]) => [key, value])),
    entries: header.metadata,
    readFloat32: (name) => readFloats(file, find(name)),
    readRaw: (name) => {
      const tensor = find(name);
      return file.read(tensor.byteOffset, tensor.byteLength, `tensor "${name}"`);
    },
    close: () => file.close(),
  };
}

function readFloats(file: RangedFile, tensor: TensorInfo): Float32Array {
  const { blockSize, blockBytes } = blockLayout(tensor.type);
  const blocks = tensor.byteLength / blockBytes;
  const values = new Float32Array(blocks * blockSize);
  const dequantise = DEQUANTISE[tensor.type];
  for (let done = 0; done < blocks; done += SLICE_BLOCKS) {
    const count = Math.min(SLICE_BLOCKS, blocks - done);
    const bytes = file.read(
      tensor.byteOffset + done * blockBytes,
      count * blockBytes,
      `tensor "${tensor.name}"`,
    );
    dequantise(bytes, values.subarray(done * blockSize, (done + count) * blockSize));
  }
  return values;
}
