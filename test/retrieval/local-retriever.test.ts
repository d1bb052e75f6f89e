import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { loadConfig } from '../../src/config/index.js';
import {
  CancelledError,
  IntegrityError,
  InvalidInputError,
  NotFoundError,
  RetrievalError,
} from '../../src/errors.js';
import { buildIndex } from '../../src/retrieval/build/build-index.js';
import { addToIndex, removeFromIndex } from '../../src/retrieval/change-index.js';
import { createRetriever } from '../../src/retrieval/create-retriever.js';
import type { Embedder } from '../../src/retrieval/embedder/embedder.js';
import type { EncoderSource } from '../../src/retrieval/embedder/encoder-source.js';
import { openParallelEmbedder } from '../../src/retrieval/embedder/parallel-embedder.js';
import type { LocalKind } from '../../src/retrieval/engines/search-service.js';
import { readManifest } from '../../src/retrieval/folder/manifest.js';
import { openLocalRetriever } from '../../src/retrieval/local-retriever.js';
import type { PassageInput } from '../../src/retrieval/passages/passage-store.js';
import type { Retriever } from '../../src/retrieval/retriever.js';
import { makePassages, writeCorpus } from './support/corpus.js';
import { homeOf, importTinyEncoder } from './support/encoder.js';
import { useTemporaryFolder } from './support/folders.js';

const folder = useTemporaryFolder();
const passages = makePassages(80);
const output = (): string => join(folder(), 'index');
let source: EncoderSource;
let open: Retriever[] = [];

// Built once; each test works on a copy.
let original = '';
let tiny: EncoderSource;
let embedder: Embedder;
beforeAll(async () => {
  original = mkdtempSync(join(tmpdir(), 'searchloop-retrieval-'));
  tiny = await importTinyEncoder(homeOf(original));
  embedder = await openParallelEmbedder(tiny, { workers: 1 });
  const input = writeCorpus(join(original, 'c.jsonl'), passages);
  await buildIndex({ input, output: join(original, 'index'), embedder });
});
afterAll(async () => {
  await embedder.close();
  rmSync(original, { recursive: true });
});

beforeEach(async () => {
  cpSync(original, folder(), { recursive: true });
  source = { ...tiny, home: homeOf(folder()) };
});

afterEach(async () => {
  await Promise.all(open.map((retriever) => retriever.close()));
  open = [];
});

async function openRetriever(kind: LocalKind = 'hnsw', timeoutMs = 30_000): Promise<Retriever> {
  const retriever = await openLocalRetriever({
    kind,
    folder: output(),
    ef: 64,
    threads: 1,
    cacheEntries: 100,
    timeoutMs,
    locateEncoder: async () => source,
  });
  open.push(retriever);
  return retriever;
}

/** As `searchloop index add` does it. */
function add(passage: PassageInput) {
  const input = join(folder(), 'added.jsonl');
  writeFileSync(input, `${JSON.stringify(passage)}\n`);
  return addToIndex({ folder: output(), input, embedder });
}

const textOf = (i: number): string => `${passages[i]!.title}\n${passages[i]!.text}`;

test.each(['hnsw', 'bm25', 'hybrid'] as const)(
  '%s finds a passage by its own text, over a worker',
  async (kind) => {
    const retriever = await openRetriever(kind);
    const { snapshotId } = await readManifest(output());
    expect(retriever.info).toEqual({ kind, name: 'index', passageCount: 80 });
    expect(retriever.snapshotId).toBe(snapshotId);
    const [found, none, other] = await retriever.search([textOf(3), '', textOf(9)], 3);
    expect(found?.[0]).toMatchObject(passages[3]!);
    expect(found).toHaveLength(3);
    expect(none).toEqual([]);
    expect(other?.[0]?.id).toBe('p9');
  },
);

test('many searches at once', async () => {
  const retriever = await openRetriever();
  const results = await Promise.all(passages.map((_, i) => retriever.search([textOf(i)], 1)));
  expect(results.map(([found]) => found?.[0]?.id)).toEqual(passages.map(({ id }) => id));
});

test.each(['hnsw', 'bm25'] as const)(
  '%s: passages added to and removed from the index on disk while it serves are followed, and change the snapshot',
  async (kind) => {
    const retriever = await openRetriever(kind);
    const before = retriever.snapshotId;
    const added = { id: 'new', title: 'Zebra', text: 'zebra giraffe walrus' };
    const between = await add(added);
    expect(between).toMatchObject({ added: 1, removed: 0, passageCount: 81 });
    expect((await retriever.search(['Zebra\nzebra giraffe walrus'], 1))[0]?.[0]).toMatchObject(added);
    expect(retriever.info.passageCount).toBe(81);
    expect(retriever.snapshotId).toBe(between.snapshotId);
    expect(between.snapshotId).not.toBe(before);
    const after = await removeFromIndex(output(), ['new', 'p3', 'unknown']);
    expect(after).toMatchObject({ removed: 2, unknown: ['unknown'] });
    expect((await retriever.search([textOf(3)], 80))[0]?.map(({ id }) => id)).not.toContain('p3');
    expect(retriever.snapshotId).toBe(after.snapshotId);
    expect(after.snapshotId).not.toBe(between.snapshotId);
  },
);

test('a wrong k, a fired signal, no answer in time', async () => {
  const retriever = await openRetriever();
  for (const k of [0, -1, 1.5, Number.NaN, 1001])
    await expect(retriever.search(['x'], k)).rejects.toThrow(InvalidInputError);
  await expect(retriever.search(['x'], 1, { signal: AbortSignal.abort() })).rejects.toThrow(CancelledError);
  const controller = new AbortController();
  const running = retriever.search([textOf(1)], 1, { signal: controller.signal });
  controller.abort();
  await expect(running).rejects.toThrow(CancelledError);
  const hasty = await openRetriever('hnsw', 1);
  await expect(
    hasty.search(
      Array.from({ length: 200 }, (_, i) => `query ${i}`),
      3,
    ),
  ).rejects.toThrow(/no answer within 1 ms/);
});

test('a worker that dies fails the searches it had, and comes back with all changes', async () => {
  const posts = jest.spyOn(Worker.prototype, 'postMessage');
  const retriever = await openRetriever();
  const worker = posts.mock.contexts[0] as Worker;
  posts.mockRestore();
  await add({ id: 'new', title: '', text: 'zebra' });
  const running = retriever.search(['a', 'b'], 1);
  const ended = worker.terminate();
  await expect(running).rejects.toThrow(RetrievalError);
  await ended;
  await expect(retriever.search(['a'], 1)).rejects.toThrow(RetrievalError);
  for (let tries = 0; ; tries++) {
    const found = await retriever.search(['zebra'], 1).catch((error) => {
      expect(error).toBeInstanceOf(RetrievalError);
      return null;
    });
    if (found !== null) {
      expect(found[0]?.[0]?.id).toBe('new');
      break;
    }
    expect(tries).toBeLessThan(100);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});

test('an index that cannot be used is refused at the start, with the error of its cause', async () => {
  source = await importTinyEncoder(homeOf(folder()), 'other', { queryPrefix: 'q: ' });
  await expect(openRetriever()).rejects.toThrow(IntegrityError);
  await expect(openRetriever()).rejects.toThrow(source.digest);
  const { graph } = await readManifest(output());
  source = { ...tiny, home: homeOf(folder()) };
  writeFileSync(join(output(), graph.file), 'short');
  await expect(openRetriever()).rejects.toThrow(`expected ${graph.bytes} bytes, the file has 5`);
  rmSync(join(output(), 'manifest.json'));
  await expect(openRetriever()).rejects.toThrow(NotFoundError);
});

test('createRetriever follows the configuration', async () => {
  const flags = {
    'retrieval.index': output(),
    'retrieval.kind': 'hybrid',
    'model.embedder': 'tiny-bert',
    'paths.home': homeOf(folder()),
  };
  const retriever = await createRetriever(loadConfig({ env: {}, flags }));
  open.push(retriever);
  expect((await retriever.search([textOf(5)], 1))[0]?.[0]?.id).toBe('p5');
  const remote = { 'retrieval.kind': 'remote', 'retrieval.remoteUrl': 'http://127.0.0.1:9/' };
  const distant = await createRetriever(loadConfig({ env: {}, flags: remote }));
  expect(distant.info).toEqual({ kind: 'remote', name: 'http://127.0.0.1:9/retrieve', passageCount: null });
  await expect(distant.search(['x'], 0)).rejects.toThrow(InvalidInputError);
  await expect(distant.search(['x'], 1)).rejects.toThrow(RetrievalError);
  const missing = loadConfig({ env: {}, flags: { ...flags, 'retrieval.index': join(folder(), 'none') } });
  await expect(createRetriever(missing)).rejects.toThrow(NotFoundError);
});
