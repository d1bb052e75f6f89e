// Bzip2 files block by block: concatenated streams (Wikipedia's multistream dumps) are read as one text, memory is
// that of one block, and reading can start at any block. seek-bzip unpacks; where blocks begin is found here.

import bunzip from 'seek-bzip';
import { CancelledError, FileFormatError } from '../../errors.js';
import { type ByteFile, bitsAt, openByteFile } from './byte-file.js';

const MAGIC_BITS = 48;
const SUM_BITS = 32;
const HEADER_BYTES = 4;
/** Digits of pi and of its root stand before a block and before a stream's sum. */
const BLOCK_MAGIC = 0x314159265359;
const END_MAGIC = 0x177245385090;
/** The largest block size there is; it only bounds what a block may unpack to. */
const HEADER = Buffer.from('BZh9');

export interface Bzip2Block {
  readonly bytes: Buffer;
  /** Place of the block in bits; `readBzip2` can start there. */
  readonly bit: number;
  /** Bytes of the file up to the end of the block. */
  readonly fileBytes: number;
}

/**
 * @param fromBit  0, or the place of a block
 * @throws {FileFormatError} damaged or cut off; names file and place
 * @throws {CancelledError} the signal fired
 */
export async function* readBzip2(
  path: string,
  fromBit: number,
  signal?: AbortSignal,
): AsyncGenerator<Bzip2Block> {
  const file = openByteFile(path);
  try {
    let bit = fromBit === 0 ? streamStart(file, path, 0) : fromBit;
    // The sum of a stream that is entered in its middle cannot be known.
    let sum: number | null = fromBit === 0 ? 0 : null;
    while (true) {
      if (signal?.aborted) throw new CancelledError();
      if (isEnd(file, path, bit)) {
        const next = endStream(file, path, bit, sum);
        if (next === file.size) return;
        bit = streamStart(file, path, next);
        sum = 0;
        continue;
      }
      const { bytes, end } = unpack(file, path, bit);
      if (sum !== null) sum = (((sum << 1) | (sum >>> 31)) ^ sumAt(file, path, bit)) >>> 0;
      yield { bytes, bit, fileBytes: Math.min(file.size, end) };
      bit = nextMagic(file, path, end);
    }
  } finally {
    file.close();
  }
}

function broken(path: string, byte: number, reason: string, cause?: unknown): FileFormatError {
  return new FileFormatError(`${path}: at byte ${byte}: ${reason}`, { cause });
}

const cutOff = (path: string, byte: number): FileFormatError =>
  broken(path, byte, 'the bzip2 file is cut off');

/** @returns place of the first block in bits */
function streamStart(file: ByteFile, path: string, byte: number): number {
  const header = Buffer.from(Array.from({ length: HEADER_BYTES }, (_, i) => Math.max(0, file.at(byte + i))));
  if (byte + HEADER_BYTES > file.size) throw cutOff(path, byte);
  if (!/^BZh[1-9]$/.test(header.toString('latin1')))
    throw broken(path, byte, 'expected the start of a bzip2 stream ("BZh" and a digit)');
  return (byte + HEADER_BYTES) * 8;
}

function isEnd(file: ByteFile, path: string, bit: number): boolean {
  const magic = bitsAt(file, bit, MAGIC_BITS);
  const byte = Math.floor(bit / 8);
  if (magic === null) throw cutOff(path, byte);
  if (magic !== BLOCK_MAGIC && magic !== END_MAGIC) throw broken(path, byte, 'expected a bzip2 block');
  return magic === END_MAGIC;
}

/** Checks the sum of the stream. @returns the byte after it */
function endStream(file: ByteFile, path: string, bit: number, sum: number | null): number {
  const stored = sumAt(file, path, bit);
  if (sum !== null && stored !== sum)
    throw broken(path, Math.floor(bit / 8), `the bzip2 stream's sum is ${hex(stored)}, came ${hex(sum)}`);
  return Math.ceil((bit + MAGIC_BITS + SUM_BITS) / 8);
}

function sumAt(file: ByteFile, path: string, bit: number): number {
  const sum = bitsAt(file, bit + MAGIC_BITS, SUM_BITS);
  if (sum === null) throw cutOff(path, Math.floor(bit / 8));
  return sum;
}

const hex = (value: number): string => value.toString(16).padStart(8, '0');

/** @returns what the block unpacks to, and the byte after the one in which it ends */
function unpack(file: ByteFile, path: string, bit: number): { bytes: Buffer; end: number } {
  const start = Math.floor(bit / 8);
  let next = 0;
  const readByte = (): number => {
    const byte = file.at(next);
    if (byte < 0) throw cutOff(path, start);
    next++;
    return byte;
  };
  const read = (buffer: Uint8Array, offset: number, length: number): number => {
    buffer.set(HEADER.subarray(0, length), offset);
    return length;
  };
  const seek = (byte: number): void => {
    next = byte;
  };
  let bytes = Buffer.allocUnsafe(1 << 20);
  let length = 0;
  const writeByte = (byte: number): void => {
    if (length === bytes.length) bytes = Buffer.concat([bytes], length * 2);
    bytes[length++] = byte;
  };
  try {
    bunzip.decodeBlock({ readByte, read, seek }, bit, { writeByte });
  } catch (error) {
    if (error instanceof FileFormatError) throw error;
    throw broken(path, start, `the bzip2 block is damaged: ${(error as Error).message}`, error);
  }
  return { bytes: bytes.subarray(0, length), end: next };
}

/** The block ended somewhere in the byte before `end`; what follows it begins with one of the two magic numbers. */
function nextMagic(file: ByteFile, path: string, end: number): number {
  for (let bit = (end - 1) * 8 + 1; bit <= end * 8; bit++) {
    const magic = bitsAt(file, bit, MAGIC_BITS);
    if (magic === BLOCK_MAGIC || magic === END_MAGIC) return bit;
  }
  if (bitsAt(file, end * 8, MAGIC_BITS) === null) throw cutOff(path, end);
  throw broken(path, end, 'expected a further bzip2 block or the end of the stream');
}
