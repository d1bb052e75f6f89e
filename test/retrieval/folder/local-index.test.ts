import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import {
  ConflictError,
  FileFormatError,
  IntegrityError,
  NotFoundError,
  UnavailableError,
  UnsupportedError,
} from '../../../src/errors.js';
import { buildIndex } from '../../../src/retrieval/build/build-index.js';
import { LocalIndex } from '../../../src/retrieval/folder/local-index.js';
import * as manifests from '../../../src/retrieval/folder/manifest.js';
import type { PassageAddition } from '../../../src/retrieval/passages/passage-store.js';
import { makePassages, writeCorpus } from '../support/corpus.js';
import { useTemporaryFolder } from '../support/folders.js';
import { createWordEmbedder } from '../support/word-embedder.js';

jest.mock('../../../src/retrieval/folder/manifest.js', () => {
  const actual = jest.requireActual('../../../src/retrieval/folder/manifest.js');
  return { ...actual, readManifest: jest.fn(actual.readManifest) };
});
const { checkEmbedder, readManifest } = manifests;
type IndexManifest = manifests.IndexManifest;

const folder = useTemporaryFolder();
const embedder = createWordEmbedder();
const withGraph = { withGraph: true };
const dist = (file: string): string => resolve(__dirname, '..', '..', '..', 'dist', file);

async function build(
  name: string,
  count = 60,
  seed = 1,
): Promise<{ output: string; manifest: IndexManifest }> {
  const input = writeCorpus(join(folder(), `${name}.jsonl`), makePassages(count, seed));
  const output = join(folder(), name);
  return { output, manifest: await buildIndex({ input, output, embedder }) };
}

async function addition(id: string, text: string): Promise<PassageAddition> {
  return { passage: { id, title: '', text }, vector: await embedder.embed([text], 'passage') };
}

function edit(output: string, change: (manifest: IndexManifest) => void): void {
  const path = join(output, 'manifest.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8'));
  change(manifest);
  writeFileSync(path, JSON.stringify(manifest));
}

async function topId(index: LocalIndex, text: string): Promise<string | undefined> {
  const found = index.nearest(await embedder.embed([text], 'query'), 1, 64);
  return index.passages(found.map(({ label }) => label))[0]?.id;
}

describe('a manifest that does not match is a refusal with both values', () => {
  const open = (output: string) => LocalIndex.open(output, withGraph);

  test('no folder, no manifest, no JSON, unknown or wrong keys, another version', async () => {
    await expect(open(join(folder(), 'none'))).rejects.toThrow(NotFoundError);
    const { output } = await build('index');
    edit(output, (manifest) => Object.assign(manifest, { extra: 1, revision: -1 }));
    await expect(open(output)).rejects.toThrow(FileFormatError);
    await expect(open(output)).rejects.toThrow(/extra[\s\S]*revision|revision[\s\S]*extra/);
    edit(output, (manifest) => Object.assign(manifest, { formatVersion: 7 }));
    await expect(open(output)).rejects.toThrow(UnsupportedError);
    await expect(open(output)).rejects.toThrow('expected format version 1, came 7');
    writeFileSync(join(output, 'manifest.json'), '{');
    await expect(open(output)).rejects.toThrow(FileFormatError);
  });

  test('another dimension or embedder', async () => {
    const { output, manifest } = await build('index');
    const other = createWordEmbedder(8).info;
    expect(() => checkEmbedder(manifest, other)).toThrow(IntegrityError);
    expect(() => checkEmbedder(manifest, other)).toThrow(/dimension 16.*8/);
    const sameSize = createWordEmbedder(16, 'other words').info;
    expect(() => checkEmbedder(manifest, sameSize)).toThrow(IntegrityError);
    for (const value of [embedder.info.digest, sameSize.digest])
      expect(() => checkEmbedder(manifest, sameSize)).toThrow(value);
    edit(output, (changed) => Object.assign(changed.graph, { dimension: 8 }));
    await expect(open(output)).rejects.toThrow(/dimension 8.*16/);
    edit(output, (changed) => Object.assign(changed.embedder, { dimension: 8 }));
    await expect(open(output)).rejects.toThrow(/dimension 8.*16/);
  });

  test('other counts', async () => {
    const { output } = await build('index');
    edit(output, (manifest) => Object.assign(manifest.graph, { count: 59 }));
    await expect(open(output)).rejects.toThrow(/59.*60/);
    edit(output, (manifest) => Object.assign(manifest.passages, { count: 59 }));
    await expect(open(output)).rejects.toThrow(/59.*60/);
  });

  test.each(['passages', 'graph'] as const)('%s missing', async (part) => {
    const { output, manifest } = await build('index');
    rmSync(join(output, manifest[part].file));
    await expect(open(output)).rejects.toThrow(IntegrityError);
    await expect(open(output)).rejects.toThrow('is missing');
  });

  test('graph changed, cut or exchanged', async () => {
    const { output, manifest } = await build('index');
    const path = join(output, manifest.graph.file);
    const good = readFileSync(path);
    const flipped = Buffer.from(good);
    flipped[5000]! ^= 1;
    writeFileSync(path, flipped);
    await expect(open(output)).rejects.toThrow(IntegrityError);
    await expect(open(output)).rejects.toThrow(manifest.graph.sha256);
    writeFileSync(path, good.subarray(0, 4000));
    await expect(open(output)).rejects.toThrow(`expected ${good.length} bytes, the file has 4000`);
  });

  test('passages of another index, damaged, or no database', async () => {
    const { output, manifest } = await build('index');
    const other = await build('other', 60, 2);
    const path = join(output, manifest.passages.file);
    cpSync(join(other.output, other.manifest.passages.file), path);
    await expect(open(output)).rejects.toThrow(IntegrityError);
    await expect(open(output)).rejects.toThrow(other.manifest.snapshotId);
    writeFileSync(
      path,
      'nothing of that kind, but long enough to be read as a header of a database file'.repeat(50),
    );
    await expect(open(output)).rejects.toThrow(FileFormatError);
  });

  test('an index that lost all its passages is not searched in silence', async () => {
    const { output } = await build('index', 3);
    const index = await open(output);
    await index.change([], ['p0', 'p1', 'p2']);
    expect(index.nearest(await embedder.embed(['river'], 'query'), 3, 64)).toEqual([]);
    index.close();
    await expect(open(output)).rejects.toThrow(UnavailableError);
  });
});

describe('changes', () => {
  test('are searched at once, change the snapshot and last', async () => {
    const { output, manifest } = await build('index');
    const index = await LocalIndex.open(output, withGraph);
    expect(index.snapshotId).toBe(manifest.snapshotId);
    const text = 'zebra giraffe elephant';
    expect(await index.change([await addition('new', text)], ['p5', 'gone'])).toEqual({
      added: 1,
      removed: 1,
    });
    const { snapshotId } = index;
    expect(snapshotId).not.toBe(manifest.snapshotId);
    expect(await topId(index, text)).toBe('new');
    expect(index.count).toBe(60);
    expect(index.bm25('zebra', 5)).toHaveLength(1);
    index.close();
    const reopened = await LocalIndex.open(output, withGraph);
    expect(reopened.snapshotId).toBe(snapshotId);
    expect(await topId(reopened, text)).toBe('new');
    const all = reopened.nearest(await embedder.embed([text], 'query'), 100, 100);
    expect(reopened.passages(all.map(({ label }) => label)).map(({ id }) => id)).not.toContain('p5');
    expect(all).toHaveLength(60);
    reopened.close();
  });

  test('survive a process that is killed right after them', async () => {
    const { output } = await build('index');
    const { passage, vector } = await addition('new', 'zebra giraffe');
    const script = `
      import { LocalIndex } from ${JSON.stringify(dist('retrieval/folder/local-index.js'))};
      const index = await LocalIndex.open(${JSON.stringify(output)}, { withGraph: true });
      const vector = Float32Array.from(${JSON.stringify([...vector])});
      await index.change([{ passage: ${JSON.stringify(passage)}, vector }], ['p1']);
      process.kill(process.pid, 'SIGKILL');`;
    expect(spawnSync(process.execPath, ['--input-type=module', '-e', script]).signal).toBe('SIGKILL');
    const index = await LocalIndex.open(output, withGraph);
    expect(index.count).toBe(60);
    expect(await topId(index, 'zebra giraffe')).toBe('new');
    await index.fold();
    index.close();
    (await LocalIndex.open(output, withGraph)).close();
  });

  test('a removed id can be added again', async () => {
    const { output } = await build('index');
    const index = await LocalIndex.open(output, withGraph);
    await index.change([], ['p5']);
    await index.change([await addition('p5', 'zebra giraffe')], []);
    expect(await topId(index, 'zebra giraffe')).toBe('p5');
    index.close();
  });

  test('folding writes them into a new graph file, and an index opened before follows', async () => {
    const { output, manifest } = await build('index');
    const watcher = await LocalIndex.open(output, withGraph);
    const index = await LocalIndex.open(output, withGraph);
    await index.change([await addition('one', 'zebra giraffe')], ['p1']);
    await watcher.refresh();
    expect(watcher.snapshotId).toBe(index.snapshotId);
    expect(await topId(watcher, 'zebra giraffe')).toBe('one');
    await index.change([await addition('two', 'walrus penguin')], []);
    await index.fold();
    const folded = await readManifest(output);
    expect(folded).toMatchObject({ revision: 2, snapshotId: index.snapshotId, graph: { count: 61 } });
    expect(folded.graph.file).not.toBe(manifest.graph.file);
    // The watcher stands at revision 1, which the journal no longer reaches: it loads the new file.
    await watcher.refresh();
    expect(await topId(watcher, 'walrus penguin')).toBe('two');
    index.close();
    watcher.close();
    const reopened = await LocalIndex.open(output, withGraph);
    expect(await topId(reopened, 'walrus penguin')).toBe('two');
    expect(reopened.count).toBe(61);
    reopened.close();
  });

  test.each(['refreshed', 'opened'])(
    'an index that is %s while others fold has all changes',
    async (what) => {
      const { output } = await build('index');
      const [watcher, index] = [
        await LocalIndex.open(output, withGraph),
        await LocalIndex.open(output, withGraph),
      ];
      const changeAndFold = async (id: string, text: string): Promise<void> => {
        await index.change([await addition(id, text)], []);
        await index.fold();
      };
      await changeAndFold('one', 'zebra giraffe');
      const read = jest.requireActual<typeof manifests>(
        '../../../src/retrieval/folder/manifest.js',
      ).readManifest;
      jest.mocked(readManifest).mockImplementationOnce(async (at) => {
        const manifest = await read(at);
        await changeAndFold('two', 'walrus penguin');
        return manifest;
      });
      if (what === 'refreshed') await watcher.refresh();
      const follower = what === 'refreshed' ? watcher : await LocalIndex.open(output, withGraph);
      expect(follower.count).toBe(62);
      expect(await topId(follower, 'walrus penguin')).toBe('two');
      for (const each of new Set([watcher, index, follower])) each.close();
    },
  );

  test('do not bring back an index that another build replaced', async () => {
    const { output } = await build('index');
    const [folding, changing] = [
      await LocalIndex.open(output, withGraph),
      await LocalIndex.open(output, withGraph),
    ];
    await folding.change([await addition('one', 'zebra giraffe')], []);
    await changing.refresh();
    const input = writeCorpus(join(folder(), 'fresh.jsonl'), makePassages(70, 2));
    const fresh = await buildIndex({ input, output, embedder });
    await expect(folding.fold()).rejects.toThrow(ConflictError);
    await expect(changing.change([], ['p1'])).rejects.toThrow(ConflictError);
    expect(await topId(changing, 'zebra giraffe')).toBe('one');
    folding.close();
    changing.close();
    const files = [fresh.graph.file, 'manifest.json', fresh.passages.file].sort();
    expect(readdirSync(output).sort()).toEqual(files);
    const reopened = await LocalIndex.open(output, withGraph);
    expect([reopened.count, reopened.snapshotId]).toEqual([70, fresh.snapshotId]);
    reopened.close();
  });

  test('folding after many removals builds the graph anew', async () => {
    const { output } = await build('index');
    const index = await LocalIndex.open(output, withGraph);
    await index.change(
      [],
      Array.from({ length: 40 }, (_, i) => `p${i}`),
    );
    await index.fold();
    const { graph } = await readManifest(output);
    expect(graph.count).toBe(20);
    const passages = makePassages(60);
    expect(await topId(index, `${passages[50]!.title}\n${passages[50]!.text}`)).toBe('p50');
    index.close();
    const bytesOfSixty = (await build('other')).manifest.graph.bytes;
    expect(graph.bytes).toBeLessThan(bytesOfSixty / 2);
    (await LocalIndex.open(output, withGraph)).close();
  });

  test("two processes that change one index keep each other's changes", async () => {
    const { output } = await build('index');
    const [a, b] = [await LocalIndex.open(output, withGraph), await LocalIndex.open(output, withGraph)];
    await a.change([await addition('from a', 'zebra giraffe')], []);
    await b.change([await addition('from b', 'walrus penguin')], []);
    await a.fold();
    await b.refresh();
    for (const index of [a, b]) {
      expect(await topId(index, 'zebra giraffe')).toBe('from a');
      expect(await topId(index, 'walrus penguin')).toBe('from b');
      index.close();
    }
  });

  test('without the graph, full text follows the changes too', async () => {
    const { output } = await build('index');
    const index = await LocalIndex.open(output, { withGraph: false });
    await index.change([await addition('new', 'zebra')], ['p1']);
    expect(index.passages(index.bm25('zebra', 1).map(({ label }) => label))[0]?.id).toBe('new');
    index.close();
    const reopened = await LocalIndex.open(output, withGraph);
    expect(await topId(reopened, 'zebra')).toBe('new');
    reopened.close();
  });
});
