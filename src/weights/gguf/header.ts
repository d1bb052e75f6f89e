// The header of a GGUF file: version, metadata, tensor list, and the rules that tie it to the file's size.

import { type FileFormatError, UnsupportedError } from '../../errors.js';
import type { RangedFile } from '../ranged-file.js';
import type { TensorInfo } from '../tensor-source.js';
import { type Cursor, createCursor } from './cursor.js';
import { type GgufEntry, readMetadata, readName } from './metadata.js';
import {
  DEFAULT_ALIGNMENT,
  MAGIC,
  MAX_ALIGNMENT,
  MAX_DIMENSIONS,
  TENSOR_TYPES,
  UNREAD_TENSOR_TYPES,
} from './types.js';

export interface GgufHeader {
  readonly version: number;
  readonly metadata: ReadonlyMap<string, GgufEntry>;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
}

/** Bytes of the shortest tensor entry: name length, dimension count, type, offset. */
const MIN_TENSOR_BYTES = 24;

interface Entry {
  readonly info: TensorInfo;
  /** Relative to the start of the data. */
  readonly dataOffset: number;
  readonly headerOffset: number;
}

/**
 * Reads and checks a header of version 2 or 3.
 * @throws {FileFormatError} naming file, tensor or key, and offset
 * @throws {UnsupportedError} version 1, big-endian order, a tensor type that is not read
 */
export function readGgufHeader(file: RangedFile): GgufHeader {
  const cursor = createCursor(file);
  const version = readPreamble(cursor, file);
  const tensorCount = cursor.uint64('tensor count');
  const metadataCount = cursor.uint64('metadata count');
  if (tensorCount * BigInt(MIN_TENSOR_BYTES) > BigInt(cursor.remaining))
    throw cursor.fault(`${tensorCount} tensors cannot lie in the ${cursor.remaining} bytes that are left`, 8);
  const metadata = readMetadata(cursor, metadataCount);
  const alignment = readAlignment(cursor, metadata);
  const entries: Entry[] = [];
  for (let i = 0; i < Number(tensorCount); i += 1) entries.push(readTensor(cursor, file, alignment));
  const dataStart = Math.ceil(cursor.offset / alignment) * alignment;
  return { version, metadata, tensors: placeTensors(cursor, file, entries, dataStart) };
}

function readPreamble(cursor: Cursor, file: RangedFile): number {
  const magic = String.fromCharCode(...cursor.bytes(4, 'magic'));
  if (magic !== MAGIC) throw cursor.fault(`expected magic "${MAGIC}", found ${JSON.stringify(magic)}`, 0);
  const version = cursor.uint32('version');
  if (version === 2 || version === 3) return version;
  if (version === 1 || (version & 0xffff) === 0)
    throw new UnsupportedError(
      `${file.path}: GGUF ${version === 1 ? 'version 1' : 'in big-endian order'} is not supported; versions 2 and 3 in little-endian order are (offset 4)`,
    );
  throw cursor.fault(`unknown GGUF version ${version}, supported are 2 and 3`, 4);
}

function readAlignment(cursor: Cursor, metadata: ReadonlyMap<string, GgufEntry>): number {
  const value = metadata.get('general.alignment')?.value ?? DEFAULT_ALIGNMENT;
  const valid =
    typeof value === 'number' && value >= 8 && value <= MAX_ALIGNMENT && Number.isInteger(Math.log2(value));
  if (!valid)
    throw cursor.fault(
      `general.alignment is ${String(value)}, expected a power of two from 8 to ${MAX_ALIGNMENT}`,
    );
  return value;
}

function readTensor(cursor: Cursor, file: RangedFile, alignment: number): Entry {
  const headerOffset = cursor.offset;
  const name = readName(cursor, 'tensor name');
  const what = `tensor "${name}"`;
  const fail = (message: string): FileFormatError => cursor.fault(`${what}: ${message}`, headerOffset);
  const dimensions = cursor.uint32(what);
  if (dimensions > MAX_DIMENSIONS) throw fail(`${dimensions} dimensions, at most ${MAX_DIMENSIONS}`);
  const sizes: bigint[] = [];
  for (let i = 0; i < dimensions; i += 1) sizes.push(cursor.uint64(what));
  const typeId = cursor.uint32(what);
  const layout = TENSOR_TYPES.get(typeId);
  if (!layout) {
    const unread = UNREAD_TENSOR_TYPES.get(typeId);
    if (unread === undefined) throw fail(`unknown tensor type ${typeId}`);
    const readable = [...TENSOR_TYPES.values()].map(({ type }) => type).join(' ');
    throw new UnsupportedError(`${file.path}: ${what} has type ${unread}; supported are ${readable}`);
  }
  if (sizes.some((size) => size > BigInt(Number.MAX_SAFE_INTEGER)))
    throw fail(`dimensions [${sizes.join(', ')}] are too large`);
  const elements = sizes.reduce((product, size) => product * size, 1n);
  const row = sizes[0] ?? 1n;
  if (row % BigInt(layout.blockSize) !== 0n)
    throw fail(`rows of ${row} values are no multiple of ${layout.type}'s blocks of ${layout.blockSize}`);
  const bytes = (elements / BigInt(layout.blockSize)) * BigInt(layout.blockBytes);
  if (bytes > BigInt(file.size))
    throw fail(`${layout.type} [${sizes.join(', ')}] needs ${bytes} bytes, the file has ${file.size}`);
  const dataOffset = cursor.uint64(what);
  if (dataOffset % BigInt(alignment) !== 0n)
    throw fail(`data offset ${dataOffset} is no multiple of the alignment ${alignment}`);
  if (dataOffset > BigInt(file.size)) throw fail(`data offset ${dataOffset} is past the end of the file`);
  const info: TensorInfo = {
    name,
    shape: sizes.map(Number).reverse(),
    type: layout.type,
    file: file.path,
    byteOffset: 0,
    byteLength: Number(bytes),
  };
  return { info, dataOffset: Number(dataOffset), headerOffset };
}

/** Turns offsets into places in the file and refuses tensors outside it, on one another, or named twice. */
function placeTensors(
  cursor: Cursor,
  file: RangedFile,
  entries: readonly Entry[],
  dataStart: number,
): Map<string, TensorInfo> {
  const tensors = new Map<string, TensorInfo>();
  for (const { info, dataOffset, headerOffset } of entries) {
    const byteOffset = dataStart + dataOffset;
    if (tensors.has(info.name)) throw cursor.fault(`tensor "${info.name}" stands twice`, headerOffset);
    if (byteOffset + info.byteLength > file.size)
      throw cursor.fault(
        `tensor "${info.name}" lies at ${byteOffset} to ${byteOffset + info.byteLength}, the file ends at ${file.size}`,
        headerOffset,
      );
    tensors.set(info.name, { ...info, byteOffset });
  }
  const inOrder = [...tensors.values()]
    .filter((tensor) => tensor.byteLength > 0)
    .sort((a, b) => a.byteOffset - b.byteOffset);
  inOrder.forEach((tensor, i) => {
    const next = inOrder[i + 1];
    if (next && tensor.byteOffset + tensor.byteLength > next.byteOffset)
      throw cursor.fault(`tensors "${tensor.name}" and "${next.name}" overlap`, next.byteOffset);
  });
  return tensors;
}
