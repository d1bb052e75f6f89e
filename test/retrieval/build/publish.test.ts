import { cpSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CancelledError, FileFormatError, IntegrityError } from '../../../src/errors.js';
import { buildIndex } from '../../../src/retrieval/build/build-index.js';
import { buildFolder } from '../../../src/retrieval/build/build-state.js';
import { publishStaged } from '../../../src/retrieval/build/publish.js';
import { LocalIndex } from '../../../src/retrieval/folder/local-index.js';
import { type IndexManifest, readManifest } from '../../../src/retrieval/folder/manifest.js';
import { openDatabase } from '../../../src/storage/index.js';
import { makePassages, writeCorpus } from '../support/corpus.js';
import { useTemporaryFolder } from '../support/folders.js';
import { createWordEmbedder } from '../support/word-embedder.js';

const folder = useTemporaryFolder();

/** A finished build whose last step was not done: `moved` names the files that stand in their place already. */
async function stage(
  moved: readonly ('passages' | 'graph')[],
): Promise<{ output: string; manifest: IndexManifest }> {
  const output = join(folder(), 'index');
  const input = writeCorpus(join(folder(), 'c.jsonl'), makePassages(20));
  const manifest = await buildIndex({ input, output, embedder: createWordEmbedder() });
  const place = buildFolder(output);
  mkdirSync(place.folder);
  renameSync(join(output, 'manifest.json'), place.stagedManifest);
  if (!moved.includes('passages')) renameSync(join(output, manifest.passages.file), place.passagesFile);
  if (!moved.includes('graph')) renameSync(join(output, manifest.graph.file), place.graphFile);
  return { output, manifest };
}

test.each([[[]], [['passages']], [['passages', 'graph']]] as const)(
  'with %j moved, publishing goes on',
  async (moved) => {
    const { output, manifest } = await stage(moved);
    expect(await publishStaged(output, buildFolder(output))).toEqual(manifest);
    expect(readdirSync(output).sort()).toEqual(
      [manifest.graph.file, 'manifest.json', manifest.passages.file].sort(),
    );
    const index = await LocalIndex.open(output, { withGraph: true });
    expect(index.count).toBe(20);
    index.close();
    expect(await publishStaged(output, buildFolder(output))).toBeNull();
  },
);

test('an earlier index that is being changed is waited for', async () => {
  const { output, manifest } = await stage([]);
  const earlier = join(folder(), 'earlier');
  const input = writeCorpus(join(folder(), 'earlier.jsonl'), makePassages(10, 2));
  const { passages } = await buildIndex({ input, output: earlier, embedder: createWordEmbedder() });
  cpSync(earlier, output, { recursive: true });
  const change = openDatabase(join(output, passages.file));
  change.exec('BEGIN IMMEDIATE');
  const place = buildFolder(output);
  await expect(publishStaged(output, place, AbortSignal.abort())).rejects.toThrow(CancelledError);
  expect((await readManifest(output)).passages.file).toBe(passages.file);
  change.close();
  expect(await publishStaged(output, place)).toEqual(manifest);
  expect(readdirSync(output)).toHaveLength(3);
});

test('a file that is gone is an error, and no manifest appears', async () => {
  const { output } = await stage([]);
  rmSync(buildFolder(output).graphFile);
  await expect(publishStaged(output, buildFolder(output))).rejects.toThrow(IntegrityError);
  expect(readdirSync(output)).not.toContain('manifest.json');
});

test.each([
  ['cut off', '{"formatVersion": 1', /expected JSON/],
  ['of another version', '{"formatVersion": 2}', /formatVersion/],
])('a staged manifest that is %s is named, and what helps', async (_name, text, message) => {
  const { output } = await stage([]);
  const place = buildFolder(output);
  writeFileSync(place.stagedManifest, text);
  const published = publishStaged(output, place);
  await expect(published).rejects.toThrow(FileFormatError);
  await expect(published).rejects.toThrow(message);
  await expect(published).rejects.toThrow(place.stagedManifest);
  await expect(published).rejects.toThrow('--restart throws it away');
});
