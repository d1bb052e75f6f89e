import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { CancelledError, FileFormatError } from '../../../src/errors.js';
import { type Bzip2Block, readBzip2 } from '../../../src/retrieval/wikipedia/bzip2-blocks.js';
import { useTemporaryFolder } from '../support/folders.js';
import { storedDump } from './dumps.js';

const folder = useTemporaryFolder();

async function blocksOf(path: string, from = 0, signal?: AbortSignal): Promise<Bzip2Block[]> {
  const blocks: Bzip2Block[] = [];
  for await (const block of readBzip2(path, from, signal)) blocks.push(block);
  return blocks;
}

const textOf = (blocks: readonly Bzip2Block[]): Buffer => Buffer.concat(blocks.map(({ bytes }) => bytes));

const write = (bytes: Uint8Array): string => {
  const path = join(folder(), 'file.bz2');
  writeFileSync(path, bytes);
  return path;
};

test.each(['multistream.xml.bz2', 'cut-anywhere.xml.bz2'])('%s unpacks to the text', async (name) => {
  expect(textOf(await blocksOf(storedDump(name)))).toEqual(readFileSync(storedDump('dump.xml')));
});

test('blocks of one stream are found, and reading starts at any of them', async () => {
  const path = storedDump('blocks.xml.bz2');
  const blocks = await blocksOf(path);
  expect(blocks.length).toBeGreaterThan(3);
  for (const [i, { bit }] of blocks.entries())
    expect((await blocksOf(path, bit)).map((block) => block.bit)).toEqual(
      blocks.slice(i).map((block) => block.bit),
    );
  expect(
    textOf(blocks)
      .toString()
      .match(/Sentence of page 40/g),
  ).toHaveLength(300);
  expect(blocks.at(-1)?.fileBytes).toBeLessThanOrEqual(readFileSync(path).length);
});

test('a cut or changed file is never read as if it were whole', async () => {
  const whole = readFileSync(storedDump('cut-anywhere.xml.bz2'));
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 0, max: 8 }), async (at, bit) => {
      const bytes = Buffer.from(bit === 8 ? whole.subarray(0, at) : whole);
      if (bit < 8) bytes[at] = (bytes[at] as number) ^ (1 << bit);
      const text = await blocksOf(write(bytes)).then(textOf, (error: Error) => error);
      if (text instanceof Error) {
        expect(text).toBeInstanceOf(FileFormatError);
        expect(text.message).toContain('file.bz2: at byte ');
      } else {
        // The size of a stream's blocks and the bits that fill its last byte change nothing.
        expect(bit).toBeLessThan(8);
        expect(text).toEqual(readFileSync(storedDump('dump.xml')));
      }
    }),
    { numRuns: 60 },
  );
});

test('bytes after the last stream, and a signal', async () => {
  const whole = readFileSync(storedDump('multistream.xml.bz2'));
  await expect(blocksOf(write(Buffer.concat([whole, Buffer.from('more')])))).rejects.toThrow(
    `at byte ${whole.length}: expected the start of a bzip2 stream`,
  );
  await expect(blocksOf(write(whole), 0, AbortSignal.abort())).rejects.toThrow(CancelledError);
});
