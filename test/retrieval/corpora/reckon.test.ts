import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CancelledError } from '../../../src/errors.js';
import { measureRates, type Rates } from '../../../src/retrieval/corpora/rates.js';
import { reckon } from '../../../src/retrieval/corpora/reckon.js';
import { useTemporaryFolder } from '../support/folders.js';
import { createWordEmbedder } from '../support/word-embedder.js';

const folder = useTemporaryFolder();

test('rates are measured once for an embedder, and again when asked or unreadable', async () => {
  const embedder = createWordEmbedder(8);
  const measure = (afresh = false) => measureRates(embedder, { home: folder(), afresh });
  const first = await measure();
  expect(first.passagesPerSecond).toBeGreaterThan(0);
  expect(first.insertsPerSecond).toBeGreaterThan(0);
  const calls = embedder.calls.length;
  expect(await measure()).toEqual(first);
  expect(embedder.calls).toHaveLength(calls);
  const [name] = readdirSync(join(folder(), 'rates'));
  writeFileSync(join(folder(), 'rates', name as string), '{"formatVersion": 1}');
  expect((await measure()).measuredAt).not.toBe(first.measuredAt);
  expect(embedder.calls.length).toBeGreaterThan(calls);
});

test('measuring stops at a signal', async () => {
  const options = { home: folder(), signal: AbortSignal.abort() };
  await expect(measureRates(createWordEmbedder(8), options)).rejects.toThrow(CancelledError);
});

test('time, memory and disk grow with the passages', () => {
  const rates: Rates = {
    formatVersion: 1,
    passagesPerSecond: 100,
    insertsPerSecond: 1000,
    graphSize: 1000,
    measuredAt: '2026-01-01T00:00:00.000Z',
  };
  const about = { passages: null, compressedBytes: 5e9, from: 'here' };
  const million = reckon({ about }, 1_000_000, rates, 384);
  expect(million.embedSeconds).toBe(10_000);
  expect(million.graphSeconds).toBeCloseTo(2000, 6);
  // 384 floats and 32 links a vector, 120 bytes of records, and what every build needs.
  expect(million.memoryBytes).toBe(1e9 + 1e6 * (1536 + 128 + 120));
  expect(million.indexBytes).toBe(1e6 * (2000 + 1536 + 128));
  expect(million.diskBytes).toBe(5e9 + million.indexBytes + 1e6 * 1536);
  expect(reckon({ about }, 10, rates, 384).graphSeconds).toBe(0.01);
});
