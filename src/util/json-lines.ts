import { type FileHandle, mkdir, open, stat, truncate } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { writeFileAtomic } from './atomic-file.js';
import { checkJson, parseJson } from './json-file.js';
import { readLines } from './lines.js';
import { OneAtATime } from './one-at-a-time.js';

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
  const turns = new OneAtATime();
  return {
    append: (value) => turns.run(() => file.appendFile(`${JSON.stringify(value)}\n`)),
    async close() {
      await turns.settled();
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
  for await (const { bytes, number: line, end } of readLines(path, {
    maxLineBytes: Number.POSITIVE_INFINITY,
  })) {
    if (end > complete) return;
    const text = bytes.toString('utf8');
    if (text.trim() === '') continue;
    yield { value: parseJson(text, z.unknown(), lineName(path, line)), line };
  }
}

/** The same, checked. @throws {FileFormatError} naming file, line and field */
export async function* parsedJsonLines<Value>(path: string, schema: z.ZodType<Value>): AsyncGenerator<Value> {
  for await (const { value, line } of readJsonLines(path))
    yield checkJson(value, schema, lineName(path, line));
}

/** Readers see the old file or the new one, never a part. */
export function writeJsonLines(path: string, values: readonly unknown[]): Promise<void> {
  return writeFileAtomic(path, values.map((value) => `${JSON.stringify(value)}\n`).join(''));
}

const lineName = (path: string, line: number): string => `${path}, line ${line}`;

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
