import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FileFormatError, InvalidInputError } from '../../../src/errors.js';
import { buildIndex } from '../../../src/retrieval/build/build-index.js';
import { openReader } from '../../../src/retrieval/inputs/registry.js';
import { PAGE_LIMITS } from '../../../src/retrieval/wikipedia/page-outcome.js';
import { createWikipediaReader } from '../../../src/retrieval/wikipedia/wikipedia-reader.js';
import { useTemporaryFolder } from '../support/folders.js';
import { createWordEmbedder } from '../support/word-embedder.js';
import { dumpXml, pageXml, readDumpFile, storedDump } from './dumps.js';

const folder = useTemporaryFolder();
const expected = JSON.parse(readFileSync(storedDump('expected.json'), 'utf8'));
const FILES = ['dump.xml', 'multistream.xml.bz2', 'cut-anywhere.xml.bz2'];

const write = (content: string | Uint8Array, name = 'wiki.xml'): string => {
  const path = join(folder(), name);
  writeFileSync(path, content);
  return path;
};

test.each(FILES)('%s gives the expected passages', async (name) => {
  const { passages, leftOut } = await readDumpFile(storedDump(name));
  const all = passages.map(({ passage }) => passage);
  expect(all.filter(({ title }) => title !== 'Huge')).toEqual(expected);
  const huge = all.filter(({ title }) => title === 'Huge');
  expect(huge.map(({ id }) => id)).toEqual(huge.map((_, i) => `20#${i + 1}`));
  expect(huge.map(({ text }) => text).join(' ')).toBe(Array(1200).fill('The sea is wide.').join(' '));
  expect(leftOut).toEqual([]);
  const bytes = passages.map((passage) => passage.bytes);
  expect(bytes).toEqual([...bytes].sort((a, b) => a - b));
});

test.each([...FILES, 'blocks.xml.bz2'])('%s is read on from any place', async (name) => {
  const { passages } = await readDumpFile(storedDump(name));
  const step = Math.ceil(passages.length / 4);
  for (let at = 0; at < passages.length; at += step) {
    const { position } = passages[at] as (typeof passages)[number];
    const stored = JSON.parse(JSON.stringify(position));
    expect((await readDumpFile(storedDump(name), { from: stored })).passages).toEqual(passages.slice(at + 1));
  }
});

test('the registry knows dumps by their names', async () => {
  for (const name of ['dump.xml', 'multistream.xml.bz2'])
    expect((await openReader(storedDump(name))).kind).toBe('wikipedia');
  const part = write(readFileSync(storedDump('multistream.xml.bz2')), 'x-pages-articles1.xml-p1p41242.bz2');
  expect((await openReader(part)).kind).toBe('wikipedia');
});

describe('limits', () => {
  test('pages that are too large or take too long are left out and named, the others are read', async () => {
    const slow = '{|\n|-\n'.repeat(20_000);
    const large = 'The sea is wide. '.repeat(20_000);
    const path = write(
      dumpXml(
        pageXml(1, 'First', 'One sentence.'),
        pageXml(2, 'Slow', slow),
        pageXml(3, 'Large', large),
        pageXml(4, 'Last', 'Another sentence.'),
      ),
    );
    const kind = createWikipediaReader({ maxPageBytes: 300_000, timeoutMs: 500 });
    const { passages, leftOut } = await readDumpFile(path, { kind });
    expect(passages.map(({ passage }) => passage.id)).toEqual(['1#1', '4#1']);
    expect(leftOut).toEqual([
      expect.stringMatching(/wiki\.xml: page "Slow" \(byte \d+\): .* within 500 ms/),
      expect.stringMatching(/wiki\.xml: page "Large" \(byte \d+\): it has more than 300000 bytes/),
    ]);
  });

  test('a build counts what was left out, without --skip-bad', async () => {
    const path = write(
      dumpXml(
        pageXml(1, 'First', 'One sentence.'),
        pageXml(2, 'Large', 'x'.repeat(PAGE_LIMITS.maxPageBytes)),
        pageXml(3, 'Last', 'Another sentence.'),
      ),
    );
    const manifest = await buildIndex({
      input: path,
      output: join(folder(), 'index'),
      embedder: createWordEmbedder(),
    });
    expect(manifest).toMatchObject({
      passages: { count: 2 },
      source: { kind: 'wikipedia', skippedEntries: 1 },
    });
  });
});

describe('broken dumps', () => {
  const good = pageXml(1, 'Good', 'One sentence.');

  test.each([
    ['a tag that is not closed', good.replace('</revision>', ''), 'broken XML'],
    ['an entity that is not defined', good.replace('One', '&unknown;'), 'broken XML'],
    ['no namespace', good.replace('<ns>0</ns>', ''), '<ns>'],
    ['no id', good.replace('<id>1</id>', '<id>one</id>'), '<id>'],
    ['no text', good.replace(/<text.*<\/text>/, ''), '<text>'],
  ])('a page with %s is named, or skipped', async (_what, page, reason) => {
    const path = write(dumpXml(good, page.replace('Good', 'Worse'), pageXml(3, 'Third', 'A third.')));
    const reading = readDumpFile(path);
    await expect(reading).rejects.toThrow(InvalidInputError);
    await expect(reading).rejects.toThrow(/wiki\.xml: page "Worse" \(byte \d+\): /);
    await expect(reading).rejects.toThrow(reason);
    const skipped = await readDumpFile(path, { skipBad: true });
    expect(skipped.passages.map(({ passage }) => passage.id)).toEqual(['1#1', '3#1']);
    expect(skipped.bad).toHaveLength(1);
  });

  test.each([
    [
      'another format',
      '<html><body>text</body></html>',
      'before the first page: expected a MediaWiki export',
    ],
    ['nothing', '', 'before the first page: broken XML'],
    ['a file that ends inside a page', dumpXml(good, good).slice(0, -60), 'ends inside page "Good"'],
    ['a file that ends between pages', `<mediawiki>${good}`, 'after page "Good": broken XML'],
    ['broken XML between pages', dumpXml(good, '<oops>', good), 'after page "Good": broken XML'],
    ['a page that is not closed', dumpXml(good.replace('</page>', '')), 'ends inside page "Good"'],
  ])('%s is an error that names file and page', async (_what, content, message) => {
    const reading = readDumpFile(write(content), { skipBad: true });
    await expect(reading).rejects.toThrow(FileFormatError);
    await expect(reading).rejects.toThrow(
      `wiki.xml: ${message.startsWith('ends') ? 'the file ' : ''}${message}`,
    );
  });
});
