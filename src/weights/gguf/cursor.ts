// Reads a GGUF header front to back through a window, never past the end of the file, and never allocates
// more than the bytes that are there.

import { FileFormatError } from '../../errors.js';
import type { RangedFile } from '../ranged-file.js';

const WINDOW_BYTES = 1 << 20;

export interface Cursor {
  /** Offset of the next byte. */
  readonly offset: number;
  readonly remaining: number;
  uint8(what: string): number;
  int8(what: string): number;
  uint16(what: string): number;
  int16(what: string): number;
  uint32(what: string): number;
  int32(what: string): number;
  uint64(what: string): bigint;
  int64(what: string): bigint;
  float32(what: string): number;
  float64(what: string): number;
  bytes(length: number, what: string): Uint8Array;
  fault(message: string, offset?: number): FileFormatError;
}

export function createCursor(file: RangedFile): Cursor {
  let window = new Uint8Array(0);
  let view = new DataView(window.buffer);
  let windowStart = 0;
  let offset = 0;

  /** Makes `length` bytes available and steps over them; returns their place in the window. */
  const take = (length: number, what: string): number => {
    if (length > file.size - offset)
      throw cursor.fault(`${what} needs ${length} bytes, the file ends at ${file.size}`);
    if (offset < windowStart || offset + length > windowStart + window.length) {
      windowStart = offset;
      window = file.read(offset, Math.min(Math.max(length, WINDOW_BYTES), file.size - offset), what);
      view = new DataView(window.buffer);
    }
    const at = offset - windowStart;
    offset += length;
    return at;
  };

  const cursor: Cursor = {
    get offset() {
      return offset;
    },
    get remaining() {
      return file.size - offset;
    },
    uint8: (what) => view1(take(1, what), 'getUint8'),
    int8: (what) => view1(take(1, what), 'getInt8'),
    uint16: (what) => view2(take(2, what), 'getUint16'),
    int16: (what) => view2(take(2, what), 'getInt16'),
    uint32: (what) => view2(take(4, what), 'getUint32'),
    int32: (what) => view2(take(4, what), 'getInt32'),
    uint64: (what) => viewBig(take(8, what), 'getBigUint64'),
    int64: (what) => viewBig(take(8, what), 'getBigInt64'),
    float32: (what) => view2(take(4, what), 'getFloat32'),
    float64: (what) => view2(take(8, what), 'getFloat64'),
    bytes: (length, what) => {
      const at = take(length, what);
      return window.subarray(at, at + length);
    },
    fault: (message, at = offset) =>
      new FileFormatError(`${file.path}: ${message} (offset ${at})`, {
        details: { file: file.path, offset: at },
      }),
  };
  const view1 = (at: number, get: 'getUint8' | 'getInt8'): number => view[get](at);
  const view2 = (
    at: number,
    get: 'getUint16' | 'getInt16' | 'getUint32' | 'getInt32' | 'getFloat32' | 'getFloat64',
  ): number => view[get](at, true);
  const viewBig = (at: number, get: 'getBigUint64' | 'getBigInt64'): bigint => view[get](at, true);
  return cursor;
}
