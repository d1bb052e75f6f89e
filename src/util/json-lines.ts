import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, stat, truncate } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { FileFormatError } from '../errors.js';

/** Appends values to a file, one JSON line each, written whole or, after a kill, cut off at the end of the file. */
export interface JsonLinesWriter {
  append(value: unknown): Promise<void>;
  close(): Promise<void>;
}

/** Opens for appending; a last line that was cut off by a kill is removed first. */
export async function openJsonLines(path: string): Promise<JsonLinesWriter> {
  await mkdir(dirname(path), { recursive: true });
  await dropCutLine(path);
  const file = await open(path, 'a');
  let last: Promise<unknown> = Promise.resolve();
  return {
    append(value) {
      const write = last.then(() => file.appendFile(`${JSON.stringify(value)}\n`));
      last = write.catch(() => {});
      return write;
    },
    async close() {
      await last;
      await file.sync();
      await file.close();
    },
  };
}

/**
 * Values of a file of JSON lines with their line numbers (from 1). Empty lines are passed over; a last line
 * without a line break that is no JSON was cut off by a kill and is passed over too.
 * @throws {FileFormatError} naming file and line
 */
export async function* readJsonLines(
  path: string,
): AsyncGenerator<{ readonly value: unknown; readonly line: number }> {
  const complete = await completeBytes(path);
  if (complete === 0) return;
  const lines = createInterface({
    input: createReadStream(path, { end: complete - 1 }),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
  let line = 0;
  for await (const text of lines) {
    line += 1;
    if (text.trim() === '') continue;
    yield { value: parseLine(text, path, line), line };
  }
}

function parseLine(text: string, path: string, line: number): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new FileFormatError(`${path}, line ${line}: expected JSON: ${(cause as Error).message}`, { cause });
  }
}

/** Size without a last line that is no JSON and has no line break. */
async function completeBytes(path: string): Promise<number> {
  const { size } = await stat(path);
  const file = await open(path, 'r');
  try {
    const tail = await lastLine(file, size);
    if (tail.length === 0) return size;
    try {
      JSON.parse(tail.toString('utf8'));
      return size;
    } catch {
      return size - tail.length;
    }
  } finally {
    await file.close();
  }
}

const CHUNK = 64 * 1024;

/** Bytes after the last line break. */
async function lastLine(file: FileHandle, size: number): Promise<Buffer> {
  let tail = Buffer.alloc(0);
  for (let start = size; start > 0; ) {
    const length = Math.min(CHUNK, start);
    start -= length;
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, start);
    const at = buffer.lastIndexOf(10);
    tail = Buffer.concat([buffer.subarray(at + 1), tail]);
    if (at >= 0) break;
  }
  return tail;
}

async function dropCutLine(path: string): Promise<void> {
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  );
  if (size === 0) return;
  const complete = await completeBytes(path);
  const file = await open(path, 'r+');
  try {
    if (complete < size) await truncate(path, complete);
    const tail = await lastLine(file, complete);
    if (tail.length > 0) await file.write('\n', complete);
    await file.sync();
  } finally {
    await file.close();
  }
}
