import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { CancelledError } from '../../errors.js';
import { readBzip2 } from './bzip2-blocks.js';

/** A place in the text of a dump, from which reading can start. */
export interface DumpPlace {
  /** Bzip2: the place of a block in bits. Plain text: 0. */
  readonly block: number;
  /** Bytes from the start of the block's text, or of the plain file. */
  readonly offset: number;
}

export interface DumpChunk {
  readonly bytes: Buffer;
  readonly place: DumpPlace;
  /** Bytes of the stored file read so far. */
  readonly fileBytes: number;
}

/**
 * The text of a dump in parts, plain or bzip2 (told by its first bytes).
 * @throws {FileFormatError} damaged or cut-off bzip2
 * @throws {CancelledError} the signal fired
 */
export async function* readDump(
  path: string,
  from: DumpPlace,
  signal?: AbortSignal,
): AsyncGenerator<DumpChunk> {
  if (await isBzip2(path)) {
    for await (const { bytes, bit, fileBytes } of readBzip2(path, from.block, signal)) {
      const offset = bit === from.block ? from.offset : 0;
      yield { bytes: bytes.subarray(offset), place: { block: bit, offset }, fileBytes };
    }
    return;
  }
  let { offset } = from;
  const stream = createReadStream(path, { start: offset, highWaterMark: 1 << 18 });
  for await (const chunk of stream) {
    if (signal?.aborted) throw new CancelledError();
    const bytes = chunk as Buffer;
    yield { bytes, place: { block: 0, offset }, fileBytes: offset + bytes.length };
    offset += bytes.length;
  }
}

async function isBzip2(path: string): Promise<boolean> {
  const file = await open(path, 'r');
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(3), 0, 3, 0);
    return bytesRead === 3 && buffer.toString('latin1') === 'BZh';
  } finally {
    await file.close();
  }
}
