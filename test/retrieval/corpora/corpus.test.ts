import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { FileFormatError, NotFoundError } from '../../../src/errors.js';
import { corpusIds, findCorpus } from '../../../src/retrieval/corpora/corpus.js';
import { useTemporaryFolder } from '../support/folders.js';

const folder = useTemporaryFolder();

test('the corpora that come with the project', () => {
  expect(corpusIds()).toEqual(['enwiki', 'simplewiki', 'wiki-18']);
  const corpora = corpusIds().map((id) => findCorpus(id));
  expect(corpora.map(({ source }) => source.type)).toEqual(['dump', 'dump', 'hub']);
});

test('an unknown name lists the known ones', () => {
  expect(() => findCorpus('dewiki')).toThrow(NotFoundError);
  expect(() => findCorpus('dewiki')).toThrow('enwiki, simplewiki, wiki-18');
});

test.each([
  ['licence', undefined, 'licence'],
  ['id', 'other', 'expected "simplewiki"'],
  ['extra', 1, 'extra'],
  ['format', 'html', 'format'],
  ['source', { type: 'dump', mirror: 'ftp://x', sums: 'a{date}', file: 'b{date}' }, 'mirror'],
  ['source', { type: 'dump', mirror: 'https://x', sums: '../{date}', file: 'b{date}' }, 'sums'],
  ['source', { type: 'dump', mirror: 'https://x', sums: 'a{date}', file: 'no-date' }, 'file'],
])('a manifest with another %s is refused and the fault named', (key, value, message) => {
  const shipped = resolve(__dirname, '..', '..', '..', 'index', 'simplewiki.json');
  const path = join(folder(), 'simplewiki.json');
  cpSync(shipped, path);
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(shipped, 'utf8')), [key]: value }));
  expect(() => findCorpus('simplewiki', folder())).toThrow(FileFormatError);
  expect(() => findCorpus('simplewiki', folder())).toThrow(message);
});
