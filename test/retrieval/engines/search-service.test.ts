import { join } from 'node:path';
import { CancelledError } from '../../../src/errors.js';
import { buildIndex } from '../../../src/retrieval/build/build-index.js';
import type { Embedder } from '../../../src/retrieval/embedder/embedder.js';
import { createSearchService, type LocalKind } from '../../../src/retrieval/engines/search-service.js';
import { LocalIndex } from '../../../src/retrieval/folder/local-index.js';
import { writeCorpus } from '../support/corpus.js';
import { useTemporaryFolder } from '../support/folders.js';
import { createWordEmbedder } from '../support/word-embedder.js';

const folder = useTemporaryFolder();
const passages = [
  { id: 'iliad', title: 'Iliad', text: 'Epic poem about the siege of Troy' },
  { id: 'odyssey', title: 'Odyssey', text: 'Epic poem about the long way home' },
  { id: 'sihl', title: 'Sihl', text: 'River that meets the Limmat in Zürich' },
];

async function open(kind: LocalKind, cacheEntries = 10, embedder: Embedder = createWordEmbedder()) {
  const output = join(folder(), 'index');
  await buildIndex({ input: writeCorpus(join(folder(), 'c.jsonl'), passages), output, embedder });
  const index = await LocalIndex.open(output, { withGraph: kind !== 'bm25' });
  const words = createWordEmbedder();
  const service = createSearchService({
    index,
    kind,
    ef: 64,
    embedder: kind === 'bm25' ? null : words,
    cacheEntries,
  });
  return { index, service, words };
}

test.each(['hnsw', 'bm25', 'hybrid'] as const)(
  '%s: best first, with ids, titles, texts and scores',
  async (kind) => {
    const { index, service } = await open(kind);
    const [siege, none, river] = await service.search(['epic siege of Troy', '  ', 'Limmat river'], 2);
    expect(siege?.[0]).toMatchObject(passages[0]!);
    expect(none).toEqual([]);
    expect(river?.[0]?.id).toBe('sihl');
    for (const found of [siege!, river!]) {
      expect(found.length).toBeLessThanOrEqual(2);
      expect(found.map(({ score }) => score)).toEqual(found.map(({ score }) => score).sort((a, b) => b - a));
      expect(found.every(({ score }) => Number.isFinite(score))).toBe(true);
    }
    index.close();
  },
);

test('hybrid takes from both sides', async () => {
  const { index, service } = await open('hybrid');
  const [found] = await service.search(['Zürich'], 3);
  expect(found?.[0]?.id).toBe('sihl');
  expect(found).toHaveLength(3);
  index.close();
});

test('queries that arrive together are embedded in one batch, each once, and later come from the cache', async () => {
  const { index, service, words } = await open('hnsw');
  const results = await Promise.all([
    service.search(['Troy', 'home'], 1),
    service.search(['Troy'], 3),
    service.search([' Troy ', 'river'], 1),
  ]);
  expect(words.calls).toEqual([['Troy', 'home', 'river']]);
  expect(results[1]?.[0]).toHaveLength(3);
  expect(results[2]?.[0]).toEqual(results[0]?.[0]);
  expect(await service.search(['Troy'], 1)).toEqual([results[0]?.[0]]);
  expect(words.calls).toHaveLength(1);
  index.close();
});

test('without a cache a query is embedded each time', async () => {
  const { index, service, words } = await open('hnsw', 0);
  await service.search(['Troy'], 1);
  await service.search(['Troy'], 1);
  expect(words.calls).toHaveLength(2);
  index.close();
});

test('an aborted search ends as cancelled and leaves the others of its batch alone', async () => {
  const { index, service } = await open('hnsw');
  const controller = new AbortController();
  const gone = service.search(['Troy'], 1, controller.signal);
  const other = service.search(['river'], 1);
  controller.abort();
  await expect(gone).rejects.toThrow(CancelledError);
  expect((await other)[0]?.[0]?.id).toBe('sihl');
  index.close();
});

test('an embedder that fails fails the searches of its batch only', async () => {
  const { index, service, words } = await open('hnsw');
  const embed = words.embed;
  Object.assign(words, { embed: () => Promise.reject(new Error('broken')) });
  await expect(service.search(['Troy'], 1)).rejects.toThrow('broken');
  Object.assign(words, { embed });
  expect((await service.search(['Troy'], 1))[0]?.[0]?.id).toBe('iliad');
  index.close();
});
