import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import { CancelledError, FileFormatError } from '../errors.js';

const NEWLINE = 10;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

export interface Line {
  /** Without the line break. */
  readonly bytes: Buffer;
  /** From 1. */
  readonly number: number;
  /** Place after the line break, in the unpacked text. */
  readonly end: number;
  /** Bytes of the stored file read so far. */
  readonly fileBytes: number;
}

export interface LineOptions {
  /** Where to go on: a place that an earlier line ended at, and that line's number. */
  readonly from?: { readonly byte: number; readonly line: number };
  /** Default: 16 MiB. */
  readonly maxLineBytes?: number;
  readonly signal?: AbortSignal;
}

const DEFAULT_MAX_LINE_BYTES = 16 * 1024 * 1024;

/**
 * Lines of a text file, plain or gzip (told by its first bytes), with bounded memory. They end at byte 10 alone:
 * the readline of newer Node.js also ends them at U+2028 and U+2029, which stand unescaped in JSON.
 * @throws {FileFormatError} a damaged or cut-off gzip, or a line above the limit
 * @throws {CancelledError} the signal fired
 */
export async function* readLines(path: string, options: LineOptions = {}): AsyncGenerator<Line> {
  const from = options.from ?? { byte: 0, line: 0 };
  const limit = options.maxLineBytes ?? DEFAULT_MAX_LINE_BYTES;
  let parts: Buffer[] = [];
  let held = 0;
  let end = from.byte;
  let number = from.line;
  let read = 0;
  for await (const { chunk, fileBytes } of unpackedChunks(path, from.byte, options.signal)) {
    let start = 0;
    read = fileBytes;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, start)) {
      parts.push(chunk.subarray(start, at));
      end += held + (at - start) + 1;
      number++;
      yield { bytes: tidy(Buffer.concat(parts), number), number, end, fileBytes };
      parts = [];
      held = 0;
      start = at + 1;
    }
    parts.push(Buffer.from(chunk.subarray(start)));
    held += chunk.length - start;
    if (held > limit)
      throw new FileFormatError(
        `${path}:${number + 1}: expected lines of at most ${limit} bytes, this one is longer`,
      );
  }
  if (held > 0) {
    const bytes = Buffer.concat(parts);
    yield { bytes: tidy(bytes, number + 1), number: number + 1, end: end + held, fileBytes: read };
  }
}

function tidy(bytes: Buffer, number: number): Buffer {
  const start = number === 1 && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0;
  const stop = bytes[bytes.length - 1] === 13 ? bytes.length - 1 : bytes.length;
  return bytes.subarray(start, Math.max(start, stop));
}

async function* unpackedChunks(
  path: string,
  fromByte: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<{ chunk: Buffer; fileBytes: number }> {
  const packed = await isGzip(path);
  const file = createReadStream(path, { highWaterMark: 1 << 18, start: packed ? 0 : fromByte });
  const stream = packed ? file.pipe(createGunzip({ chunkSize: 1 << 18 })) : file;
  file.on('error', (error) => stream.destroy(error));
  // A place inside a gzip cannot be sought: what lies before it is unpacked and dropped.
  let skip = packed ? fromByte : 0;
  try {
    for await (const piece of stream) {
      if (signal?.aborted) throw new CancelledError();
      const chunk = piece as Buffer;
      const fileBytes = file.bytesRead + (packed ? 0 : fromByte);
      if (skip < chunk.length) yield { chunk: chunk.subarray(skip), fileBytes };
      skip = Math.max(0, skip - chunk.length);
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (!code.startsWith('Z_')) throw error;
    throw new FileFormatError(`${path}: the gzip is damaged or cut off: ${(error as Error).message}`, {
      cause: error,
    });
  } finally {
    file.destroy();
    stream.destroy();
  }
}

async function isGzip(path: string): Promise<boolean> {
  const file = await open(path, 'r');
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(2), 0, 2, 0);
    return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b;
  } finally {
    await file.close();
  }
}
