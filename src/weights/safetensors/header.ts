// The header of a safetensors file: length prefix, JSON, and the rules that tie it to the bytes that follow.

import { FileFormatError, UnsupportedError } from '../../errors.js';
import type { RangedFile } from '../ranged-file.js';
import { parseStrictJson, type StrictJson, StrictJsonError } from '../strict-json.js';
import type { TensorInfo, TensorType } from '../tensor-source.js';

/** Longest header of the format's own library; reader and writer keep the same bound. */
export const MAX_HEADER_BYTES = 100_000_000;

const LENGTH_BYTES = 8;

/** Bits of one element. Types that hold no weights we use are known so that the file's rules can be checked. */
const DTYPE_BITS: Readonly<Record<string, number>> = {
  F32: 32,
  F16: 16,
  BF16: 16,
  BOOL: 8,
  U8: 8,
  I8: 8,
  U16: 16,
  I16: 16,
  U32: 32,
  I32: 32,
  U64: 64,
  I64: 64,
  F64: 64,
  C64: 64,
  F8_E5M2: 8,
  F8_E4M3: 8,
  F8_E8M0: 8,
  F8_E4M3FNUZ: 8,
  F8_E5M2FNUZ: 8,
  F6_E2M3: 6,
  F6_E3M2: 6,
  F4: 4,
};

const READABLE = new Set<string>(['F32', 'F16', 'BF16'] satisfies TensorType[]);
/** Buffers such as position ids: kept out of the tensors, no reason to refuse the file. */
const INTEGERS = new Set(['BOOL', 'U8', 'I8', 'U16', 'I16', 'U32', 'I32', 'U64', 'I64']);

export interface SafetensorsHeader {
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly metadata: ReadonlyMap<string, string>;
  /** Names and types of integer tensors, which are not read. */
  readonly skipped: ReadonlyMap<string, string>;
}

interface Entry {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly end: number;
}

/**
 * Reads and checks a header. Every tensor's byte range must equal shape x element size, and the ranges must
 * cover the rest of the file without hole or overlap.
 * @throws {FileFormatError} naming file, tensor and offset
 * @throws {UnsupportedError} a floating type that is not read (F64, F8, ...)
 */
export function readSafetensorsHeader(file: RangedFile): SafetensorsHeader {
  const length = headerLength(file);
  const header = parseHeader(file, length);
  const metadata = readMetadata(file, header.get('__metadata__'));
  const entries: Entry[] = [];
  for (const [name, value] of header) if (name !== '__metadata__') entries.push(readEntry(file, name, value));
  checkCoverage(file, entries, LENGTH_BYTES + length);
  const tensors = new Map<string, TensorInfo>();
  const skipped = new Map<string, string>();
  for (const { name, dtype, shape, begin, end } of entries) {
    if (INTEGERS.has(dtype)) skipped.set(name, dtype);
    else if (!READABLE.has(dtype))
      throw new UnsupportedError(
        `${file.path}: tensor "${name}" has type ${dtype}; supported are F32, F16 and BF16`,
      );
    else
      tensors.set(name, {
        name,
        shape,
        type: dtype as TensorType,
        file: file.path,
        byteOffset: LENGTH_BYTES + length + begin,
        byteLength: end - begin,
      });
  }
  return { tensors, metadata, skipped };
}

function headerLength(file: RangedFile): number {
  if (file.size < LENGTH_BYTES)
    throw fault(file, `expected an 8-byte header length at offset 0, the file has ${file.size} bytes`);
  const prefix = file.read(0, LENGTH_BYTES, 'header length');
  const length = new DataView(prefix.buffer).getBigUint64(0, true);
  if (length > BigInt(MAX_HEADER_BYTES))
    throw fault(file, `header length at offset 0 is ${length} bytes, the limit is ${MAX_HEADER_BYTES}`);
  if (length > BigInt(file.size - LENGTH_BYTES))
    throw fault(
      file,
      `header length at offset 0 is ${length} bytes, only ${file.size - LENGTH_BYTES} follow`,
    );
  return Number(length);
}

function parseHeader(file: RangedFile, length: number): Map<string, StrictJson> {
  const bytes = file.read(LENGTH_BYTES, length, 'header');
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw fault(file, `header at offset ${LENGTH_BYTES} is not UTF-8`, cause);
  }
  if (!text.startsWith('{'))
    throw fault(
      file,
      `header at offset ${LENGTH_BYTES} must begin with "{", found ${JSON.stringify(text[0] ?? '')}`,
    );
  try {
    // The object was seen to begin with a brace, so the value is a Map.
    return parseStrictJson(text, 4) as Map<string, StrictJson>;
  } catch (cause) {
    if (!(cause instanceof StrictJsonError)) throw cause;
    throw fault(file, `header: ${cause.message} at offset ${LENGTH_BYTES + cause.offset}`, cause);
  }
}

function readMetadata(file: RangedFile, value: StrictJson | undefined): ReadonlyMap<string, string> {
  if (value === undefined) return new Map();
  if (!(value instanceof Map)) throw fault(file, 'header: __metadata__ must be an object of strings');
  for (const [key, item] of value)
    if (typeof item !== 'string')
      throw fault(file, `header: __metadata__ "${key}" must be a string, found ${JSON.stringify(item)}`);
  return value as Map<string, string>;
}

function readEntry(file: RangedFile, name: string, value: StrictJson): Entry {
  if (!(value instanceof Map)) throw tensorFault(file, name, 'expected an object');
  const dtype = value.get('dtype');
  if (typeof dtype !== 'string' || !Object.hasOwn(DTYPE_BITS, dtype))
    throw tensorFault(file, name, `unknown dtype ${JSON.stringify(dtype) ?? '(none)'}`);
  const shape = counts(value.get('shape'));
  if (!shape) throw tensorFault(file, name, 'shape must be a list of whole numbers of at least 0');
  const offsets = counts(value.get('data_offsets'));
  if (offsets?.length !== 2)
    throw tensorFault(file, name, 'data_offsets must be two whole numbers of at least 0');
  const [begin, end] = offsets as [number, number];
  if (end < begin) throw tensorFault(file, name, `data_offsets end at ${end}, before they begin at ${begin}`);
  const bits = shape.reduce((product, size) => product * BigInt(size), BigInt(DTYPE_BITS[dtype] as number));
  if (bits !== BigInt(end - begin) * 8n)
    throw tensorFault(
      file,
      name,
      `${dtype} [${shape.join(', ')}] needs ${bits / 8n} bytes, data_offsets [${begin}, ${end}] give ${end - begin}`,
    );
  return { name, dtype, shape, begin, end };
}

function counts(value: StrictJson | undefined): number[] | null {
  if (!Array.isArray(value)) return null;
  return value.every((item) => Number.isSafeInteger(item) && (item as number) >= 0)
    ? (value as number[])
    : null;
}

function checkCoverage(file: RangedFile, entries: readonly Entry[], dataStart: number): void {
  const size = file.size - dataStart;
  let covered = 0;
  for (const entry of [...entries].sort((a, b) => a.begin - b.begin || a.end - b.end)) {
    if (entry.begin !== covered)
      throw tensorFault(
        file,
        entry.name,
        `data begins at offset ${entry.begin} of the data, expected ${covered}: ${entry.begin < covered ? 'overlap' : 'hole'}`,
      );
    if (entry.end > size)
      throw tensorFault(
        file,
        entry.name,
        `data ends at offset ${dataStart + entry.end} of the file, which has ${file.size} bytes`,
      );
    covered = entry.end;
  }
  if (covered !== size)
    throw fault(file, `${size - covered} bytes at offset ${dataStart + covered} belong to no tensor`);
}

function tensorFault(file: RangedFile, name: string, message: string): FileFormatError {
  return fault(file, `tensor ${JSON.stringify(name)}: ${message}`);
}

function fault(file: RangedFile, message: string, cause?: unknown): FileFormatError {
  return new FileFormatError(`${file.path}: ${message}`, { cause, details: { file: file.path } });
}
