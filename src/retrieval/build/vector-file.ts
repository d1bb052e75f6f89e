import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';
import { FileFormatError } from '../../errors.js';

/** f32 vectors of one dimension, one after the other, appended while an index is built. */
export interface VectorFile {
  /** Vectors in the file. */
  readonly count: number;
  /** @param vectors f32 [n, dimension]. Durable when this returns. */
  append(vectors: Float32Array): void;
  /** Vectors `first` to `first + count - 1`, f32 [count, dimension]. */
  read(first: number, count: number): Float32Array;
  close(): void;
}

/**
 * Opens the file to go on after `keep` vectors. What lies behind them was not confirmed (a torn write, a window
 * whose bookkeeping is missing) and is cut off.
 * @throws {FileFormatError} the file holds fewer than `keep` vectors
 */
export function openVectorFile(path: string, dimension: number, keep: number): VectorFile {
  const rowBytes = dimension * Float32Array.BYTES_PER_ELEMENT;
  const file = openSync(path, existsSync(path) ? 'r+' : 'w+');
  const { size } = fstatSync(file);
  if (size < keep * rowBytes) {
    closeSync(file);
    throw new FileFormatError(
      `${path}: expected ${keep} vectors of ${rowBytes} bytes, the file has ${size} bytes; build again with --restart`,
    );
  }
  ftruncateSync(file, keep * rowBytes);
  let count = keep;
  return {
    get count() {
      return count;
    },
    append(vectors) {
      const bytes = new Uint8Array(vectors.buffer, vectors.byteOffset, vectors.byteLength);
      for (let at = 0; at < bytes.length; )
        at += writeSync(file, bytes, at, bytes.length - at, count * rowBytes + at);
      fsyncSync(file);
      count += vectors.length / dimension;
    },
    read(first, wanted) {
      const vectors = new Float32Array(wanted * dimension);
      const bytes = new Uint8Array(vectors.buffer);
      for (let at = 0; at < bytes.length; ) {
        const came = readSync(file, bytes, at, bytes.length - at, first * rowBytes + at);
        if (came === 0) throw new FileFormatError(`${path}: ends before vector ${first + wanted}`);
        at += came;
      }
      return vectors;
    },
    close: () => closeSync(file),
  };
}
