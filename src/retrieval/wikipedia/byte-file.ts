import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

const WINDOW_BYTES = 1 << 18;

/** Random reads of single bytes, with a window of the file in memory. */
export interface ByteFile {
  readonly size: number;
  /** @returns 0 to 255, or -1 from the end of the file on */
  at(offset: number): number;
  close(): void;
}

export function openByteFile(path: string): ByteFile {
  const file = openSync(path, 'r');
  const { size } = fstatSync(file);
  const window = new Uint8Array(WINDOW_BYTES);
  let start = 0;
  let length = 0;
  return {
    size,
    at(offset) {
      if (offset < start || offset >= start + length) {
        start = offset;
        length = readSync(file, window, 0, WINDOW_BYTES, offset);
        if (length === 0) return -1;
      }
      return window[offset - start] as number;
    },
    close: () => closeSync(file),
  };
}

/** An unsigned number of `count` bits (at most 53) at a place in bits; null when the file ends before. */
export function bitsAt(file: ByteFile, bit: number, count: number): number | null {
  let value = 0;
  for (let i = 0; i < count; ) {
    const at = bit + i;
    const byte = file.at(Math.floor(at / 8));
    if (byte < 0) return null;
    const free = 8 - (at % 8);
    const take = Math.min(free, count - i);
    value = value * 2 ** take + ((byte >> (free - take)) & (2 ** take - 1));
    i += take;
  }
  return value;
}
