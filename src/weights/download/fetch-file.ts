// One file from a server into its place: resumed where an earlier try ended, its sum taken as it comes.

import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { CancelledError, DownloadError, IntegrityError } from '../../errors.js';
import type { OnProgress } from '../../util/progress.js';
import { LATE, within } from '../../util/within.js';
import { type ByteSource, SourceError } from './source.js';
import { checkSum, startSum, type WantedFile } from './wanted.js';
import { type CheckedWriter, openCheckedWriter } from './write-checked.js';

/** Tries that brought no new byte, in a row, before the source is given up. */
const FRUITLESS_TRIES = 3;
const RETRY_PAUSE_MS = 500;
/** A transfer without a byte for this long is cut and continued. */
const STALL_MS = 30_000;

/**
 * Completes the file at `partial`. After a wrong sum the bytes are removed and fetched once more from the start,
 * since a part from an earlier try may have been the fault.
 * @throws {IntegrityError} the sum is wrong both times; {SourceError | NotFoundError} the source fails
 */
export async function fetchFile(
  wanted: WantedFile,
  source: ByteSource,
  partial: string,
  options: { readonly onProgress?: OnProgress; readonly signal?: AbortSignal },
): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const resumed = await fetchOnce(wanted, source, partial, options);
    try {
      checkSum(wanted, resumed.sum, source.name);
      return;
    } catch (error) {
      await rm(partial, { force: true });
      if (attempt > 0 || !resumed.continued || !(error instanceof IntegrityError)) throw error;
    }
  }
}

async function fetchOnce(
  wanted: WantedFile,
  source: ByteSource,
  partial: string,
  options: { readonly onProgress?: OnProgress; readonly signal?: AbortSignal },
): Promise<{ sum: string; continued: boolean }> {
  let writer = await openCheckedWriter(partial, startSum(wanted));
  const continued = writer.size > 0;
  try {
    let startedOver = false;
    let received = false;
    for (let fruitless = 0; writer.size < wanted.sizeBytes; ) {
      const before = writer.size;
      try {
        const response = await source.read(wanted, writer.size);
        if (response) await copyBody(response, writer, wanted, options);
        else {
          if (startedOver)
            throw new SourceError(`${wanted.path}: the server cannot continue a transfer`, {
              retryable: false,
            });
          startedOver = true;
          writer = await startOver(writer, wanted, partial);
        }
      } catch (error) {
        if (options.signal?.aborted) throw new CancelledError();
        received ||= writer.size > before;
        fruitless = writer.size > before ? 0 : fruitless + 1;
        if (!isRetryable(error, received) || fruitless >= FRUITLESS_TRIES) throw error;
        await sleep(RETRY_PAUSE_MS * 2 ** fruitless);
      }
    }
    return { sum: await writer.finish(), continued };
  } finally {
    await writer.close();
  }
}

/** A source that could not be reached from the start is left at once, so that the next source gets its turn. */
function isRetryable(error: unknown, received: boolean): boolean {
  if (error instanceof SourceError) return error.retryable && (received || !error.unreachable);
  return error instanceof DownloadError;
}

async function startOver(writer: CheckedWriter, wanted: WantedFile, partial: string): Promise<CheckedWriter> {
  await writer.close();
  await rm(partial, { force: true });
  return openCheckedWriter(partial, startSum(wanted));
}

async function copyBody(
  response: Response,
  writer: CheckedWriter,
  wanted: WantedFile,
  options: { readonly onProgress?: OnProgress; readonly signal?: AbortSignal },
): Promise<void> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const stop = (): void => void reader.cancel().catch(() => {});
  options.signal?.addEventListener('abort', stop, { once: true });
  try {
    while (true) {
      const read = await within(reader.read(), STALL_MS);
      if (read === LATE) throw new DownloadError(`${wanted.path}: no byte for ${STALL_MS / 1000} s`);
      const { done, value } = read;
      if (options.signal?.aborted) throw new CancelledError();
      if (done) break;
      if (writer.size + value.length > wanted.sizeBytes)
        throw new IntegrityError(`${wanted.path}: more than the expected ${wanted.sizeBytes} bytes came`);
      await writer.write(value);
      options.onProgress?.({
        stage: `download ${wanted.path}`,
        done: writer.size,
        total: wanted.sizeBytes,
        unit: 'bytes',
      });
    }
  } catch (error) {
    stop();
    if (error instanceof IntegrityError || error instanceof CancelledError) throw error;
    throw new DownloadError(`${wanted.path}: the transfer was cut at ${writer.size} bytes`, { cause: error });
  } finally {
    options.signal?.removeEventListener('abort', stop);
  }
  if (writer.size < wanted.sizeBytes)
    throw new DownloadError(
      `${wanted.path}: the transfer ended at ${writer.size} of ${wanted.sizeBytes} bytes`,
    );
}
