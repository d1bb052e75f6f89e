// A weight file behind a descriptor: ranged reads only, since files above 2 GiB cannot be read whole.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { FileFormatError, NotFoundError } from '../errors.js';

/** Largest single read; the system call refuses 2 GiB and more. */
const READ_BYTES = 1 << 28;

export interface RangedFile {
  readonly path: string;
  readonly size: number;
  /**
   * Reads exactly `length` bytes at `offset`.
   * @throws {FileFormatError} when the file ends before; `what` says whose bytes they are
   */
  read(offset: number, length: number, what: string): Uint8Array<ArrayBuffer>;
  /** Like `read`, into memory of the caller. */
  readInto(target: Uint8Array, offset: number, what: string): void;
  close(): void;
}

/** @throws {NotFoundError} when the path is no readable file */
export function openRangedFile(path: string): RangedFile {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
  } catch (cause) {
    throw new NotFoundError(`cannot open weight file ${path}: ${(cause as Error).message}`, { cause });
  }
  const status = fstatSync(descriptor);
  if (!status.isFile()) {
    closeSync(descriptor);
    throw new NotFoundError(`${path} is not a file`);
  }
  let open = true;
  const file: RangedFile = {
    path,
    size: status.size,
    read(offset, length, what) {
      // Checked before the allocation, so that a false length never asks for more than the file holds.
      checkRange(file, offset, length, what);
      const bytes = new Uint8Array(length);
      file.readInto(bytes, offset, what);
      return bytes;
    },
    readInto(target, offset, what) {
      checkRange(file, offset, target.length, what);
      for (let done = 0; done < target.length; ) {
        const wanted = Math.min(READ_BYTES, target.length - done);
        const got = readSync(descriptor, target, done, wanted, offset + done);
        if (got === 0) throw tooShort(file, offset + done, target.length - done, what);
        done += got;
      }
    },
    close() {
      if (open) closeSync(descriptor);
      open = false;
    },
  };
  return file;
}

function checkRange(file: RangedFile, offset: number, length: number, what: string): void {
  if (offset + length > file.size) throw tooShort(file, offset, length, what);
}

function tooShort(file: RangedFile, offset: number, length: number, what: string): FileFormatError {
  return new FileFormatError(
    `${file.path}: ${what} needs ${length} bytes at offset ${offset}, but the file has ${file.size} bytes`,
    { details: { file: file.path, offset } },
  );
}
