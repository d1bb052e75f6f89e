// Members of zip files as streams: whole archives are never held in memory.

import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { type Entry, open, type ZipFile } from 'yauzl';
import { CancelledError, FileFormatError, NotFoundError } from '../../errors.js';
import { openCheckedWriter } from './write-checked.js';

const openZip = promisify(open) as unknown as (
  path: string,
  options: { lazyEntries: boolean; autoClose: boolean },
) => Promise<ZipFile>;

/**
 * Writes members of a zip file to files of their own and gives each sha256.
 * @param targets  member name to target path and the most bytes it may have
 * @throws {NotFoundError} a member is missing; {FileFormatError} not a zip file, or a member too large
 */
export async function extractMembers(
  archive: string,
  targets: ReadonlyMap<string, { readonly path: string; readonly maxBytes: number }>,
  options: { readonly onBytes?: (member: string, bytes: number) => void; readonly signal?: AbortSignal } = {},
): Promise<Map<string, string>> {
  const zip = await openZip(archive, { lazyEntries: true, autoClose: false }).catch((cause: Error) => {
    throw new FileFormatError(`${archive}: not a readable zip file: ${cause.message}`, { cause });
  });
  const sums = new Map<string, string>();
  try {
    for await (const entry of entriesOf(zip, archive)) {
      const target = targets.get(entry.fileName);
      if (!target) continue;
      if (entry.uncompressedSize > target.maxBytes)
        throw new FileFormatError(
          `${archive}: member ${entry.fileName} has ${entry.uncompressedSize} bytes, expected at most ${target.maxBytes}`,
        );
      const stream = await openMember(zip, entry);
      sums.set(entry.fileName, await writeMember(stream, entry, archive, target.path, options));
      if (sums.size === targets.size) break;
    }
  } finally {
    zip.close();
  }
  for (const member of targets.keys())
    if (!sums.has(member)) throw new NotFoundError(`${archive} has no member ${member}`);
  return sums;
}

async function* entriesOf(zip: ZipFile, archive: string): AsyncGenerator<Entry> {
  while (true) {
    const entry = await new Promise<Entry | null>((resolve, reject) => {
      const settle = (action: () => void): void => {
        zip.removeListener('entry', onEntry);
        zip.removeListener('end', onEnd);
        zip.removeListener('error', onError);
        action();
      };
      const onEntry = (next: Entry): void => settle(() => resolve(next));
      const onEnd = (): void => settle(() => resolve(null));
      const onError = (cause: Error): void =>
        settle(() => reject(new FileFormatError(`${archive}: ${cause.message}`, { cause })));
      zip.on('entry', onEntry);
      zip.on('end', onEnd);
      zip.on('error', onError);
      zip.readEntry();
    });
    if (!entry) return;
    yield entry;
  }
}

function openMember(zip: ZipFile, entry: Entry): Promise<Readable> {
  return new Promise((resolve, reject) =>
    zip.openReadStream(entry, (error, stream) => (error ? reject(error) : resolve(stream))),
  );
}

async function writeMember(
  stream: Readable,
  entry: Entry,
  archive: string,
  path: string,
  options: { readonly onBytes?: (member: string, bytes: number) => void; readonly signal?: AbortSignal },
): Promise<string> {
  const writer = await openCheckedWriter(path, createHash('sha256'));
  try {
    for await (const chunk of stream) {
      if (options.signal?.aborted) throw new CancelledError();
      await writer.write(chunk as Buffer);
      options.onBytes?.(entry.fileName, writer.size);
    }
    return await writer.finish();
  } catch (cause) {
    stream.destroy();
    if (cause instanceof CancelledError) throw cause;
    throw new FileFormatError(`${archive}: member ${entry.fileName}: ${(cause as Error).message}`, { cause });
  } finally {
    await writer.close();
  }
}
