import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CancelledError } from '../../src/errors.js';
import { addToIndex, removeFromIndex } from '../../src/retrieval/change-index.js';
import { type EnsureOptions, ensureIndex } from '../../src/retrieval/ensure-index.js';
import { describeIndex, listIndexes } from '../../src/retrieval/folder/list-indexes.js';
import { LocalIndex } from '../../src/retrieval/folder/local-index.js';
import { readManifest } from '../../src/retrieval/folder/manifest.js';
import { verifyIndex } from '../../src/retrieval/folder/verify-index.js';
import { openDatabase } from '../../src/storage/index.js';
import { makePassages, writeCorpus } from './support/corpus.js';
import { useTemporaryFolder } from './support/folders.js';
import { createWordEmbedder } from './support/word-embedder.js';

const folder = useTemporaryFolder();
const embedder = createWordEmbedder();
const place = () => ({ input: join(folder(), 'corpus.jsonl'), output: join(folder(), 'demo') });

const ensure = (options: Partial<EnsureOptions> = {}) =>
  ensureIndex({
    ...place(),
    name: 'demo',
    embedderDigest: embedder.info.digest,
    openEmbedder: async () => embedder,
    ...options,
  });

test('builds when missing, leaves what fits, rebuilds when corpus or embedder changed or a file is gone', async () => {
  writeCorpus(place().input, makePassages(30));
  expect((await ensure()).built).toBe(true);
  const opened = jest.fn(async () => embedder);
  expect((await ensure({ openEmbedder: opened })).built).toBe(false);
  expect(opened).not.toHaveBeenCalled();
  writeCorpus(place().input, makePassages(31));
  const changed = await ensure();
  expect([changed.built, changed.manifest.passages.count]).toEqual([true, 31]);
  const other = createWordEmbedder(8);
  const options = { embedderDigest: other.info.digest, openEmbedder: async () => other };
  expect((await ensure(options)).manifest.graph.dimension).toBe(8);
  rmSync(join(place().output, (await readManifest(place().output)).graph.file));
  expect((await ensure(options)).built).toBe(true);
});

test('what a build of another corpus left unfinished does not stand in the way', async () => {
  writeCorpus(place().input, makePassages(30));
  const controller = new AbortController();
  const onProgress = (): void => controller.abort();
  await expect(ensure({ onProgress, signal: controller.signal })).rejects.toThrow('cancelled');
  expect(readdirSync(place().output)).toEqual(['building']);
  writeCorpus(place().input, makePassages(40));
  expect((await ensure()).manifest.passages.count).toBe(40);
  expect(readdirSync(place().output)).not.toContain('building');
});

test('passages added from a file and removed by id, seen by an index that is open; additions outlast a start', async () => {
  writeCorpus(place().input, makePassages(30));
  const { manifest } = await ensure();
  const open = await LocalIndex.open(place().output, { withGraph: true });
  const input = writeCorpus(join(folder(), 'more.jsonl.gz'), makePassages(300, 2).slice(20));
  const added = await addToIndex({ folder: place().output, input, embedder });
  // p20 to p29 are there already and get new content.
  expect(added).toMatchObject({ name: 'demo', added: 280, passageCount: 300 });
  expect(await removeFromIndex(place().output, ['p0', 'p299', 'nobody'])).toMatchObject({
    removed: 2,
    passageCount: 298,
  });
  await open.refresh();
  expect(open.count).toBe(298);
  open.close();
  expect((await ensure()).built).toBe(false);
  const summary = await describeIndex(place().output);
  expect(summary).toMatchObject({ passageCount: 298, revision: 3 });
  expect(summary.snapshotId).not.toBe(manifest.snapshotId);
  await verifyIndex(place().output);
});

test('an embedder of another kind cannot add', async () => {
  writeCorpus(place().input, makePassages(30));
  await ensure();
  const add = addToIndex({ folder: place().output, input: place().input, embedder: createWordEmbedder(8) });
  await expect(add).rejects.toThrow(/dimension 16.*8/);
});

test('verify finds a passage that was changed behind the index, and one that full text misses', async () => {
  writeCorpus(place().input, makePassages(30));
  const { manifest } = await ensure();
  const path = join(place().output, manifest.passages.file);
  await verifyIndex(place().output);
  const db = openDatabase(path);
  db.exec(`UPDATE passages SET text = 'forged' WHERE id = 'p3'`);
  db.close();
  await expect(verifyIndex(place().output)).rejects.toThrow(manifest.passages.contentDigest);
  const again = openDatabase(path);
  again.exec(`DELETE FROM passages WHERE id = 'p3'`);
  again.close();
  await expect(verifyIndex(place().output)).rejects.toThrow('expected 30 passages, came 29');
});

test('verify ends when its signal fires', async () => {
  writeCorpus(place().input, makePassages(30));
  await ensure();
  const controller = new AbortController();
  const onProgress = ({ stage }: { readonly stage: string }): void => {
    if (stage === 'verify passages') controller.abort(new CancelledError());
  };
  const verifying = verifyIndex(place().output, { onProgress, signal: controller.signal });
  await expect(verifying).rejects.toThrow(CancelledError);
});

test('list shows what is there and what is broken', async () => {
  writeCorpus(place().input, makePassages(30));
  await ensure();
  await ensure({ output: join(folder(), 'broken'), name: 'broken' });
  const [broken] = await listIndexes(folder());
  rmSync(
    join(folder(), 'broken', (broken as { manifest: { passages: { file: string } } }).manifest.passages.file),
  );
  expect(await listIndexes(folder())).toMatchObject([
    { error: expect.stringContaining('is missing') },
    { passageCount: 30, manifest: { name: 'demo' } },
  ]);
  expect(await listIndexes(join(folder(), 'none'))).toEqual([]);
});
