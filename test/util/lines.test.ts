import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { CancelledError, FileFormatError } from '../../src/errors.js';
import { type LineOptions, readLines } from '../../src/util/lines.js';
import { useTemporaryFolder } from '../retrieval/support/folders.js';

const folder = useTemporaryFolder();

async function read(path: string, options?: LineOptions) {
  const lines: { text: string; number: number; end: number }[] = [];
  for await (const { bytes, number, end } of readLines(path, options))
    lines.push({ text: bytes.toString(), number, end });
  return lines;
}

test('plain and gzip files give the same lines, with or without a last line break', async () => {
  for (const text of ['one\ntwo\r\n\nfour', '\ufeffone\ntwo\r\n\nfour\n']) {
    const plain = join(folder(), 'a.txt');
    const packed = join(folder(), 'a.txt.gz');
    writeFileSync(plain, text);
    writeFileSync(packed, gzipSync(text));
    const lines = await read(plain);
    expect(lines.map((line) => line.text)).toEqual(['one', 'two', '', 'four']);
    expect(lines.map((line) => line.number)).toEqual([1, 2, 3, 4]);
    expect(await read(packed)).toEqual(lines);
  }
});

test('members of a gzip are joined', async () => {
  const path = join(folder(), 'a.gz');
  writeFileSync(path, Buffer.concat([gzipSync('one\ntw'), gzipSync('o\nthree\n')]));
  expect((await read(path)).map((line) => line.text)).toEqual(['one', 'two', 'three']);
});

test('from the end of any line, reading goes on with the next', async () => {
  let round = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.string({ unit: 'grapheme' }).map((line) => line.replace(/[\r\n\ufeff]/g, ' ')),
        { minLength: 1 },
      ),
      fc.boolean(),
      async (texts, packed) => {
        const path = join(folder(), `${round++}`);
        const bytes = Buffer.from(`${texts.join('\n')}\n`);
        writeFileSync(path, packed ? gzipSync(bytes) : bytes);
        const all = await read(path);
        expect(all.map((line) => line.text)).toEqual(texts);
        const at = Math.floor(all.length / 2);
        const rest = await read(path, { from: { byte: all[at]!.end, line: all[at]!.number } });
        expect(rest).toEqual(all.slice(at + 1));
      },
    ),
    { numRuns: 40 },
  );
});

test('a damaged or cut-off gzip, and an endless line, are errors that name the file', async () => {
  const path = join(folder(), 'a.gz');
  const packed = gzipSync('line\n'.repeat(10_000));
  writeFileSync(path, packed.subarray(0, packed.length - 20));
  await expect(read(path)).rejects.toThrow(FileFormatError);
  await expect(read(path)).rejects.toThrow('a.gz');
  const long = join(folder(), 'long.txt');
  writeFileSync(long, `short\n${'x'.repeat(2_000_000)}`);
  await expect(read(long, { maxLineBytes: 1_000_000 })).rejects.toThrow('long.txt:2');
});

test('a fired signal ends it', async () => {
  const path = join(folder(), 'a.txt');
  writeFileSync(path, 'line\n'.repeat(1000));
  await expect(read(path, { signal: AbortSignal.abort() })).rejects.toThrow(CancelledError);
});
