import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import {
  CancelledError,
  DownloadError,
  IntegrityError,
  InvalidInputError,
  NotFoundError,
} from '../../../src/errors.js';
import { findCorpus } from '../../../src/retrieval/corpora/corpus.js';
import { type PullCorpusOptions, pullCorpus } from '../../../src/retrieval/corpora/pull-corpus.js';
import { startHub } from '../../support/hub-server.js';
import { useTemporaryFolder } from '../support/folders.js';
import { createWordEmbedder } from '../support/word-embedder.js';
import { storedDump } from '../wikipedia/dumps.js';
import { type DumpMirror, sha1, startDumpMirror } from './dump-mirror.js';

const folder = useTemporaryFolder();
const DUMP = readFileSync(storedDump('multistream.xml.bz2'));
const OTHER = readFileSync(storedDump('cut-anywhere.xml.bz2'));
const simplewiki = findCorpus('simplewiki');

let mirror: DumpMirror;
beforeEach(async () => {
  mirror = await startDumpMirror();
  mirror.publish('20260101', DUMP);
});
afterEach(() => mirror.close());

const options = (more: Partial<PullCorpusOptions> = {}): PullCorpusOptions => ({
  home: folder(),
  output: join(folder(), 'indexes', 'simplewiki'),
  embedder: createWordEmbedder(),
  mirror: mirror.address,
  ...more,
});
const downloads = (): string[] => {
  const path = join(folder(), 'corpora', 'simplewiki');
  return existsSync(path) ? readdirSync(path).sort() : [];
};
const FILE = 'simplewiki-20260101-pages-articles-multistream.xml.bz2';
const PATH = `/simplewiki/20260101/${FILE}`;

test('the latest dump is fetched by its date, checked and built; again, nothing is done', async () => {
  const first = await pullCorpus(simplewiki, options());
  expect(first).toMatchObject({ built: true, manifest: { name: 'simplewiki', passages: { count: 54 } } });
  expect(readFileSync(first.file)).toEqual(DUMP);
  expect(downloads()).toEqual([`${sha1(DUMP).slice(0, 12)}-${FILE}`]);
  const again = await pullCorpus(simplewiki, options());
  expect(again).toEqual({ ...first, built: false });
  expect(mirror.transfers).toEqual([{ path: PATH, range: null, bytesSent: DUMP.length }]);
});

test('a later dump takes the place of an earlier one; a date fetches that one', async () => {
  await pullCorpus(simplewiki, options());
  mirror.publish('20260201', OTHER);
  const later = await pullCorpus(simplewiki, options());
  expect(later.built).toBe(true);
  expect(downloads()).toHaveLength(1);
  expect(downloads()[0]).toContain('-simplewiki-20260201-');
  const earlier = await pullCorpus(simplewiki, options({ date: '20260101' }));
  expect(readFileSync(earlier.file)).toEqual(DUMP);
});

test('a transfer that is cut goes on where it ended', async () => {
  mirror.faults.cuts = [1000, 700];
  const { file } = await pullCorpus(simplewiki, options());
  expect(readFileSync(file)).toEqual(DUMP);
  expect(mirror.transfers.map(({ range }) => range)).toEqual([null, 'bytes=1000-', 'bytes=1700-']);
});

test('an aborted transfer is kept, never used, and goes on with the next call', async () => {
  mirror.faults.slowMs = 20;
  const controller = new AbortController();
  const onProgress = ({ done }: { done: number }) => done > 1000 && controller.abort();
  const stopped = pullCorpus(simplewiki, options({ onProgress, signal: controller.signal }));
  await expect(stopped).rejects.toThrow(CancelledError);
  expect(downloads()).toEqual([expect.stringMatching(/\.partial$/)]);
  mirror.faults.slowMs = undefined;
  const { file } = await pullCorpus(simplewiki, options());
  expect(readFileSync(file)).toEqual(DUMP);
  expect(mirror.transfers[1]?.range).toMatch(/^bytes=\d{4}-$/);
});

test('a server without ranges sends the whole file again', async () => {
  mirror.faults.ignoreRange = true;
  mirror.faults.cuts = [1000];
  const { file } = await pullCorpus(simplewiki, options());
  expect(readFileSync(file)).toEqual(DUMP);
});

test('a wrong sum is refused, and the bytes are not kept', async () => {
  mirror.publish('20260101', DUMP, sha1(OTHER));
  const pulled = pullCorpus(simplewiki, options());
  await expect(pulled).rejects.toThrow(IntegrityError);
  await expect(pulled).rejects.toThrow(
    `${FILE} from ${mirror.address}: wrong sha1, expected ${sha1(OTHER)}, got ${sha1(DUMP)}`,
  );
  expect(downloads().filter((name) => !name.endsWith('.partial'))).toEqual([]);
  expect(existsSync(join(folder(), 'indexes'))).toBe(false);
  mirror.publish('20260101', DUMP);
  expect((await pullCorpus(simplewiki, options())).built).toBe(true);
});

test('what a mirror does not have, and one that fails, is said with its address', async () => {
  const enwiki = pullCorpus(findCorpus('enwiki'), options());
  await expect(enwiki).rejects.toThrow(NotFoundError);
  await expect(enwiki).rejects.toThrow(
    `${mirror.address}/enwiki/latest/enwiki-latest-sha1sums.txt: not found`,
  );
  const missing = pullCorpus(simplewiki, options({ date: '20250101' }));
  await expect(missing).rejects.toThrow('simplewiki-20250101-sha1sums.txt: not found (status 404)');
  mirror.faults.status = 503;
  await expect(pullCorpus(simplewiki, options())).rejects.toThrow(/sha1sums\.txt: status 503/);
  const nobody = pullCorpus(simplewiki, options({ mirror: 'http://127.0.0.1:9' }));
  await expect(nobody).rejects.toThrow(DownloadError);
  await expect(nobody).rejects.toThrow('http://127.0.0.1:9 cannot be reached');
  await expect(pullCorpus(simplewiki, options({ mirror: 'ftp://x' }))).rejects.toThrow(InvalidInputError);
  await expect(pullCorpus(simplewiki, options({ date: 'today' }))).rejects.toThrow('YYYYMMDD');
});

test('a corpus of the hub is fetched with the sum that the hub lists', async () => {
  const lines = Array.from({ length: 300 }, (_, i) =>
    JSON.stringify({
      id: String(i),
      contents: `"Title ${i}"\nText ${sha1(Buffer.from([i]))} of passage ${i}.`,
    }),
  );
  const bytes = gzipSync(lines.join('\n'));
  const hub = await startHub('datasets/PeterJinGo/wiki-18-corpus', { 'wiki-18.jsonl.gz': bytes });
  const before = process.env.HF_ENDPOINT;
  process.env.HF_ENDPOINT = hub.endpoint;
  try {
    const corpus = findCorpus('wiki-18');
    const place = { mirror: undefined, output: join(folder(), 'indexes', 'wiki-18') };
    const { manifest, file } = await pullCorpus(corpus, options(place));
    expect(manifest).toMatchObject({ name: 'wiki-18', source: { kind: 'jsonl' }, passages: { count: 300 } });
    expect(readFileSync(file)).toEqual(bytes);
    await expect(pullCorpus(corpus, options())).rejects.toThrow('HF_ENDPOINT');
    hub.faults.replaced = { 'wiki-18.jsonl.gz': Buffer.from(bytes).fill(0, 100, 110) };
    const wrong = pullCorpus(corpus, options({ ...place, home: join(folder(), 'other') }));
    await expect(wrong).rejects.toThrow('wrong sha256');
  } finally {
    if (before === undefined) delete process.env.HF_ENDPOINT;
    else process.env.HF_ENDPOINT = before;
    await hub.close();
  }
});
