// Large files written front to back beside their final name, then renamed: readers see all of it or nothing.

import { randomBytes } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncFolder } from '../util/atomic-file.js';

export interface PartFile {
  /** Bytes written so far. */
  readonly size: number;
  write(bytes: Uint8Array): Promise<void>;
  /** Fills with `byte` up to a multiple of `alignment`. */
  pad(alignment: number, byte?: number): Promise<void>;
}

/** Runs `fill`, makes the bytes durable and puts the file under its name; a failure leaves the old file. */
export async function writePartFile(path: string, fill: (file: PartFile) => Promise<void>): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}-${randomBytes(4).toString('hex')}.tmp`;
  const handle = await open(temporary, 'wx');
  let size = 0;
  const write = async (bytes: Uint8Array): Promise<void> => {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await handle.write(bytes, done, Math.min(bytes.length - done, 1 << 26), size);
      done += bytesWritten;
      size += bytesWritten;
    }
  };
  try {
    await fill({
      get size() {
        return size;
      },
      write,
      pad: (alignment, byte = 0) =>
        write(new Uint8Array((alignment - (size % alignment)) % alignment).fill(byte)),
    });
    await handle.sync();
    await handle.close();
    await rename(temporary, path);
  } catch (error) {
    await handle.close().catch(() => {});
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}
