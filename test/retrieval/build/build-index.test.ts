import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CancelledError, InvalidInputError, RetrievalError, UnavailableError } from '../../../src/errors.js';
import { type BuildOptions, buildIndex } from '../../../src/retrieval/build/build-index.js';
import type { Embedder } from '../../../src/retrieval/embedder/embedder.js';
import { LocalIndex } from '../../../src/retrieval/folder/local-index.js';
import { readManifest } from '../../../src/retrieval/folder/manifest.js';
import type { Progress } from '../../../src/util/progress.js';
import { makePassages, writeCorpus } from '../support/corpus.js';
import { useTemporaryFolder } from '../support/folders.js';
import { createWordEmbedder } from '../support/word-embedder.js';

const folder = useTemporaryFolder();
const embedder = createWordEmbedder();

const build = (options: Partial<BuildOptions> & { input: string }) =>
  buildIndex({ output: join(folder(), 'index'), embedder, ...options });

/** Everything a search can show, and the graph's bytes. */
async function contentOf(output: string) {
  const { snapshotId, passages, graph } = await readManifest(output);
  const index = await LocalIndex.open(output, { withGraph: true });
  const labels = Array.from({ length: index.count }, (_, label) => label);
  const rows = index.passages(labels);
  index.close();
  return { snapshotId, contentDigest: passages.contentDigest, sha256: graph.sha256, rows };
}

test('builds a folder of three files that is searched', async () => {
  const passages = makePassages(300);
  const input = writeCorpus(join(folder(), 'corpus.jsonl'), passages);
  const stages = new Set<string>();
  const manifest = await build({ input, onProgress: ({ stage }) => stages.add(stage) });
  expect([...stages]).toEqual(['read', 'embed', 'graph']);
  expect(manifest).toMatchObject({
    name: 'index',
    source: { kind: 'jsonl', name: 'corpus.jsonl', skippedEntries: 0, duplicateEntries: 0 },
    embedder: embedder.info,
    passages: { count: 300 },
    graph: { count: 300, dimension: 16, metric: 'cosine', M: 16, efConstruction: 200 },
    revision: 0,
  });
  const output = join(folder(), 'index');
  expect(readdirSync(output).sort()).toEqual(
    [manifest.graph.file, 'manifest.json', manifest.passages.file].sort(),
  );
  const index = await LocalIndex.open(output, { withGraph: true });
  const vector = await embedder.embed([`${passages[7]!.title}\n${passages[7]!.text}`], 'query');
  const [best] = index.nearest(vector, 3, 64);
  expect(index.passages([best!.label])[0]).toMatchObject(passages[7]!);
  expect(best!.score).toBeCloseTo(1, 5);
  index.close();
});

test('plain and gz inputs give the same index, down to the bytes of the graph', async () => {
  const passages = makePassages(200);
  const outputs = await Promise.all(
    ['a.jsonl', 'b.jsonl.gz'].map(async (name) => {
      const output = join(folder(), `out-${name}`);
      await build({ input: writeCorpus(join(folder(), name), passages), output });
      return contentOf(output);
    }),
  );
  expect(outputs[0]).toEqual(outputs[1]);
});

test('stopped at any place, the same call goes on and gives the same index', async () => {
  const input = writeCorpus(join(folder(), 'corpus.jsonl.gz'), makePassages(2600));
  await build({ input, output: join(folder(), 'whole') });
  const whole = await contentOf(join(folder(), 'whole'));
  const stops: ((progress: Progress) => boolean)[] = [
    ({ stage }) => stage === 'read',
    ({ stage, done }) => stage === 'embed' && done === 0,
    ({ stage, done }) => stage === 'embed' && done === 2048,
    ({ stage, done }) => stage === 'graph' && done === 1024,
  ];
  const seen = createWordEmbedder();
  for (const stop of stops) {
    const controller = new AbortController();
    const onProgress = (progress: Progress): void => void (stop(progress) && controller.abort());
    await expect(build({ input, embedder: seen, onProgress, signal: controller.signal })).rejects.toThrow(
      CancelledError,
    );
    expect(existsSync(join(folder(), 'index', 'manifest.json'))).toBe(false);
  }
  await build({ input, embedder: seen });
  // No passage was embedded twice, for every window was kept.
  expect(seen.calls.flat()).toHaveLength(2600);
  const resumed = await contentOf(join(folder(), 'index'));
  // The graph was saved in the middle, and hnswlib does not save its random state: same vectors, other links.
  expect({ ...resumed, sha256: '' }).toEqual({ ...whole, sha256: '' });
});

test('a torn tail of the vectors is cut off and made again', async () => {
  const input = writeCorpus(join(folder(), 'corpus.jsonl'), makePassages(1500));
  await build({ input, output: join(folder(), 'whole') });
  const controller = new AbortController();
  const onProgress = ({ stage, done }: Progress): void =>
    void (stage === 'embed' && done === 1024 && controller.abort());
  await expect(build({ input, onProgress, signal: controller.signal })).rejects.toThrow(CancelledError);
  const vectors = join(folder(), 'index', 'building', 'vectors.f32');
  writeFileSync(vectors, Buffer.concat([readFileSync(vectors), Buffer.alloc(777, 3)]));
  await build({ input });
  expect(await contentOf(join(folder(), 'index'))).toEqual(await contentOf(join(folder(), 'whole')));
});

test('vectors that are missing are noticed', async () => {
  const input = writeCorpus(join(folder(), 'corpus.jsonl'), makePassages(1500));
  const controller = new AbortController();
  const onProgress = ({ stage, done }: Progress): void =>
    void (stage === 'embed' && done === 1024 && controller.abort());
  await expect(build({ input, onProgress, signal: controller.signal })).rejects.toThrow(CancelledError);
  writeFileSync(join(folder(), 'index', 'building', 'vectors.f32'), Buffer.alloc(64 * 1000));
  await expect(build({ input })).rejects.toThrow('expected 1024 vectors');
  await build({ input, restart: true });
});

test('a bad entry ends the build with its place, or is counted', async () => {
  const input = join(folder(), 'corpus.jsonl');
  const lines = makePassages(20).map((passage) => JSON.stringify(passage));
  lines.splice(10, 0, '{"id": 5}', 'not json');
  writeFileSync(input, lines.join('\n'));
  await expect(build({ input })).rejects.toThrow('corpus.jsonl:11: ');
  const manifest = await build({ input, skipBad: true, restart: true });
  expect(manifest.source.skippedEntries).toBe(2);
  expect(manifest.passages.count).toBe(20);
});

test('a repeated passage counts once; an id with two contents is a bad entry', async () => {
  const passages = makePassages(10);
  const input = writeCorpus(join(folder(), 'corpus.jsonl'), [...passages, passages[3]!]);
  const manifest = await build({ input });
  expect(manifest.source.duplicateEntries).toBe(1);
  expect(manifest.passages.count).toBe(10);
  writeCorpus(input, [...passages, { ...passages[3]!, text: 'other' }]);
  await expect(build({ input })).rejects.toThrow('corpus.jsonl:11: id "p3" was used before');
  expect((await build({ input, skipBad: true, restart: true })).source.skippedEntries).toBe(1);
});

test('an input without passages, and an embedder that gives no direction, are errors', async () => {
  const input = join(folder(), 'corpus.jsonl');
  writeFileSync(input, '\n\n');
  await expect(build({ input })).rejects.toThrow(InvalidInputError);
  // Nothing to go on with, so nothing is left.
  expect(existsSync(join(folder(), 'index'))).toBe(false);
  writeCorpus(input, makePassages(3));
  const zeros: Embedder = { ...embedder, embed: async (texts) => new Float32Array(16 * texts.length) };
  await expect(build({ input, embedder: zeros, restart: true })).rejects.toThrow(RetrievalError);
});

test.each([1, 10_001, 2.5])('%d links of a passage are refused before anything is read', async (M) => {
  const input = writeCorpus(join(folder(), 'corpus.jsonl'), makePassages(3));
  await expect(build({ input, M })).rejects.toThrow(InvalidInputError);
  expect(existsSync(join(folder(), 'index'))).toBe(false);
});

test('an unfinished build of another request is not mixed with this one', async () => {
  const input = writeCorpus(join(folder(), 'corpus.jsonl'), makePassages(50));
  const controller = new AbortController();
  const onProgress = (): void => controller.abort();
  await expect(build({ input, onProgress, signal: controller.signal })).rejects.toThrow(CancelledError);
  await expect(build({ input, M: 8 })).rejects.toThrow(/M 16.*8/);
  await expect(build({ input, embedder: createWordEmbedder(8) })).rejects.toThrow('--restart');
  writeCorpus(input, makePassages(60));
  await expect(build({ input })).rejects.toThrow('corpus.jsonl (');
  expect((await build({ input, restart: true })).passages.count).toBe(60);
});

test('two builds in one folder do not mix', async () => {
  const input = writeCorpus(join(folder(), 'corpus.jsonl'), makePassages(50));
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let begin = (): void => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const slow: Embedder = {
    ...embedder,
    embed: async (texts, kind) => {
      begin();
      await opened;
      return embedder.embed(texts, kind);
    },
  };
  const first = build({ input, embedder: slow });
  await begun;
  for (const restart of [false, true])
    await expect(build({ input, restart })).rejects.toThrow(UnavailableError);
  open();
  expect((await first).passages.count).toBe(50);
  expect(await contentOf(join(folder(), 'index'))).toMatchObject({ rows: { length: 50 } });
  expect(readdirSync(join(folder(), 'index'))).toHaveLength(3);
});

test('a new build replaces the old one, which stays usable for who has it open', async () => {
  const input = writeCorpus(join(folder(), 'corpus.jsonl'), makePassages(50));
  const old = await build({ input });
  const output = join(folder(), 'index');
  const open = await LocalIndex.open(output, { withGraph: true });
  writeCorpus(input, makePassages(70, 2));
  const fresh = await build({ input });
  expect(readdirSync(output)).not.toContain(old.graph.file);
  expect(fresh.snapshotId).not.toBe(old.snapshotId);
  expect(open.count).toBe(50);
  expect(open.passages([0])[0]?.id).toBe('p0');
  open.close();
  const reopened = await LocalIndex.open(output, { withGraph: true });
  expect(reopened.count).toBe(70);
  reopened.close();
});
