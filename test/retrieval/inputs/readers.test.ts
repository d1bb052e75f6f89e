import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { InvalidInputError, NotFoundError, UnsupportedError } from '../../../src/errors.js';
import type { ReaderPosition, ReadPassage } from '../../../src/retrieval/inputs/reader.js';
import { openReader } from '../../../src/retrieval/inputs/registry.js';
import { useTemporaryFolder } from '../support/folders.js';

const folder = useTemporaryFolder();

async function readAll(
  path: string,
  from: ReaderPosition | null = null,
  bad?: Error[],
): Promise<ReadPassage[]> {
  const onBad = (error: Error): void => {
    if (!bad) throw error;
    bad.push(error);
  };
  const all: ReadPassage[] = [];
  for await (const passage of (await openReader(path)).read({ from, onBad })) all.push(passage);
  return all;
}

const write = (name: string, content: string | Uint8Array): string => {
  const path = join(folder(), name);
  writeFileSync(path, content);
  return path;
};

describe('lines of JSON', () => {
  const corpus = [
    '{"id": "0", "contents": "\\"The \\"Q\\" book\\"\\nFirst line.\\nSecond line."}',
    '{"id": 1, "title": "T", "text": "body", "source": "somewhere"}',
    '',
    '{"id": "2", "text": "no title"}',
    '{"id": "3", "contents": "only one line"}',
  ].join('\n');
  const expected = [
    { id: '0', title: 'The "Q" book', text: 'First line.\nSecond line.' },
    { id: '1', title: 'T', text: 'body' },
    { id: '2', title: '', text: 'no title' },
    { id: '3', title: '', text: 'only one line' },
  ];

  test('both forms, plain and gz, are read, and reading goes on from any passage', async () => {
    for (const path of [write('c.jsonl', corpus), write('c.jsonl.gz', gzipSync(corpus))]) {
      const all = await readAll(path);
      expect(all.map(({ passage }) => passage)).toEqual(expected);
      expect(all.map(({ where }) => where.split(':').pop())).toEqual(['1', '2', '4', '5']);
      for (const [i, { position }] of all.entries())
        expect((await readAll(path, position)).map(({ passage }) => passage)).toEqual(expected.slice(i + 1));
    }
  });

  test.each([
    ['{"id": "1", "text": ', 'it is not JSON'],
    ['[1]', 'came a list'],
    ['"text"', 'came "text"'],
    ['{"text": "x"}', '"id": expected'],
    ['{"id": "", "text": "x"}', '"id": expected'],
    ['{"id": {"a": 1}, "text": "x"}', 'came an object'],
    ['{"id": "1"}', 'neither "contents" nor "text"'],
    ['{"id": "1", "text": 5}', '"text": expected a text, came 5'],
    ['{"id": "1", "title": null, "text": "  "}', 'the passage has no text'],
    ['{"id": "1", "title": 3, "text": "x"}', '"title": expected a text, came 3'],
    ['{"id": "1", "contents": ["x"]}', '"contents": expected a text, came a list'],
  ])('a bad line names file, line and reason: %s', async (line, reason) => {
    const path = write('c.jsonl', `{"id":"0","text":"fine"}\n${line}\n{"id":"9","text":"fine"}`);
    await expect(readAll(path)).rejects.toThrow(InvalidInputError);
    await expect(readAll(path)).rejects.toThrow(`c.jsonl:2: `);
    await expect(readAll(path)).rejects.toThrow(reason);
    const bad: Error[] = [];
    expect((await readAll(path, null, bad)).map(({ passage }) => passage.id)).toEqual(['0', '9']);
    expect(bad).toHaveLength(1);
  });

  test('bytes that are not UTF-8 are a bad line; half a surrogate pair is replaced', async () => {
    const path = write('c.jsonl', Buffer.from('{"id":"1","text":"\xff"}\n', 'latin1'));
    await expect(readAll(path)).rejects.toThrow('not valid UTF-8');
    const other = write('d.jsonl', '{"id":"1","text":"a\\ud800b"}');
    expect((await readAll(other))[0]?.passage.text).toBe('a\ufffdb');
  });
});

describe('text and Markdown', () => {
  const long = (word: string, sentences: number): string =>
    Array.from(
      { length: sentences },
      (_, i) => `${word} sentence number ${i} has exactly eight words here.`,
    ).join(' ');

  test('a folder is read in the order of names, hidden files and links left out', async () => {
    const root = join(folder(), 'docs');
    mkdirSync(join(root, 'sub'), { recursive: true });
    mkdirSync(join(root, '.git'));
    writeFileSync(join(root, 'b.txt'), long('Beta', 30));
    writeFileSync(
      join(root, 'a.md'),
      `# Alpha\n\nIntro text.\n\n## Part\n\n${long('Part', 14)}\n\n\`\`\`\n# no heading\n\`\`\`\n`,
    );
    writeFileSync(join(root, 'sub', 'c.txt'), 'Deep.');
    writeFileSync(join(root, 'image.png'), 'no');
    writeFileSync(join(root, '.git', 'x.txt'), 'no');
    symlinkSync(join(root, 'b.txt'), join(root, 'link.txt'));
    const all = await readAll(root);
    expect(all.map(({ passage }) => [passage.id, passage.title])).toEqual([
      ['a.md#1', 'Alpha'],
      ['a.md#2', 'Alpha: Part'],
      ['a.md#3', 'Alpha: Part'],
      ['b.txt#1', 'b'],
      ['b.txt#2', 'b'],
      ['b.txt#3', 'b'],
      ['sub/c.txt#1', 'c'],
    ]);
    expect(all[2]?.passage.text).toContain('# no heading');
    for (const [i, { position }] of all.entries())
      expect((await readAll(root, position)).map(({ passage }) => passage)).toEqual(
        all.slice(i + 1).map(({ passage }) => passage),
      );
  });

  test('one file alone is an input too', async () => {
    expect((await readAll(write('note.md', 'Just text.')))[0]?.passage).toEqual({
      id: 'note.md#1',
      title: 'note',
      text: 'Just text.',
    });
  });
});

test('what cannot be read is refused with what can', async () => {
  await expect(readAll(join(folder(), 'missing.jsonl'))).rejects.toThrow(NotFoundError);
  await expect(readAll(write('x.parquet', ''))).rejects.toThrow(UnsupportedError);
  await expect(readAll(write('x.parquet', ''))).rejects.toThrow('.jsonl');
  mkdirSync(join(folder(), 'empty'));
  await expect(readAll(join(folder(), 'empty'))).rejects.toThrow('found none');
});

describe('fingerprint of an input', () => {
  const of = async (path: string): Promise<string> => (await openReader(path)).fingerprint;

  test.each(['c.jsonl', 'dump.xml', 'note.txt'])('of %s stays when only the date changes', async (name) => {
    const path = write(name, '{"id":"1","text":"alpha"}\n');
    const before = await of(path);
    utimesSync(path, new Date(0), new Date(0));
    expect(await of(path)).toBe(before);
  });

  test.each([
    ['c.jsonl', '{"id":"1","text":"alpha"}\n', '{"id":"1","text":"omega"}\n'],
    ['note.md', 'alpha', 'omega'],
  ])('of %s changes with a content of the same length', async (name, first, second) => {
    const before = await of(write(name, first));
    expect(await of(write(name, second))).not.toBe(before);
  });
});
