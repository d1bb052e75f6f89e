import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import type { DumpChunk } from '../../../src/retrieval/wikipedia/dump-chunks.js';
import { type PageSlice, slicePages } from '../../../src/retrieval/wikipedia/page-slices.js';
import { storedDump } from './dumps.js';

const text = readFileSync(storedDump('dump.xml'));

async function* chunksOf(cuts: readonly number[]): AsyncGenerator<DumpChunk> {
  const borders = [...new Set([0, ...cuts, text.length])].sort((a, b) => a - b);
  for (const [i, end] of borders.slice(1).entries()) {
    const start = borders[i] as number;
    // Every chunk is a block of its own, so that places must be told by block.
    yield { bytes: text.subarray(start, end), place: { block: start, offset: 0 }, fileBytes: end };
  }
}

async function slice(cuts: readonly number[], maxPageBytes: number): Promise<PageSlice[]> {
  const slices: PageSlice[] = [];
  for await (const page of slicePages(chunksOf(cuts), { path: 'dump.xml', maxPageBytes, resumed: false }))
    slices.push(page);
  return slices;
}

test('pages, places and titles do not depend on how the text comes in', async () => {
  const whole = await slice([], 10_000);
  expect(whole).toHaveLength(13);
  expect(whole.filter(({ bytes }) => bytes === null).map(({ title }) => title)).toEqual(['Huge']);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(text.length), { maxLength: 200 }), async (cuts) => {
      const slices = await slice(cuts, 10_000);
      expect(slices.map(({ bytes, title }) => [bytes?.toString(), title])).toEqual(
        whole.map(({ bytes, title }) => [bytes?.toString(), title]),
      );
      expect(slices.map(({ place }) => place.block + place.offset)).toEqual(
        whole.map(({ place }) => place.offset),
      );
    }),
    { numRuns: 100, examples: [[[5428]]] },
  );
});
