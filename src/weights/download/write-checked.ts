import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** A file that grows while its sum is taken; what was there before counts into the sum. */
export interface CheckedWriter {
  /** Bytes that are there, earlier ones included. */
  readonly size: number;
  write(chunk: Uint8Array): Promise<void>;
  /** Makes the bytes durable and gives the sum of the whole file in hexadecimal. */
  finish(): Promise<string>;
  close(): Promise<void>;
}

/** Opens a file, made when absent, to be continued where it ends. */
export async function openCheckedWriter(
  path: string,
  hash: Hash = createHash('sha256'),
): Promise<CheckedWriter> {
  let size = 0;
  let handle: FileHandle | null = await open(path, 'a').then(async (made) => {
    await made.close();
    return open(path, 'r+');
  });
  const close = async (): Promise<void> => {
    const closing = handle;
    handle = null;
    await closing?.close();
  };
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
      hash.update(chunk as Buffer);
      size += (chunk as Buffer).length;
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    get size() {
      return size;
    },
    // At explicit places: a second writer of the same content could only write the same bytes there again.
    write: async (chunk) => {
      for (let done = 0; done < chunk.length; ) {
        const part = chunk.subarray(done);
        done += (await (handle as FileHandle).write(part, 0, part.length, size + done)).bytesWritten;
      }
      hash.update(chunk);
      size += chunk.length;
    },
    finish: async () => {
      await handle?.truncate(size);
      await handle?.sync();
      await close();
      return hash.digest('hex');
    },
    close,
  };
}
