import fc from 'fast-check';
import { toFtsQuery } from '../../../src/retrieval/passages/fts-query.js';

test('words are quoted, joined by OR, counted once; function words are left out', () => {
  expect(toFtsQuery('Who wrote the Iliad, the ILIAD?')).toBe('"wrote" OR "iliad"');
  expect(toFtsQuery('to be or not to be')).toBe('"to" OR "be" OR "or" OR "not"');
  expect(toFtsQuery('Zürich 1848')).toBe('"zürich" OR "1848"');
});

test('a text without words gives no query', () => {
  for (const text of ['', '   ', '?!', '"', '*^()', '\u0000']) expect(toFtsQuery(text)).toBeNull();
});

test('a very long text gives a bounded query', () => {
  const query = toFtsQuery(Array.from({ length: 5000 }, (_, i) => `word${i}`).join(' '));
  expect(query?.split(' OR ')).toHaveLength(64);
});

test('nothing in a text can act as syntax', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' })), (text) => {
      const query = toFtsQuery(text);
      if (query !== null) expect(query).toMatch(/^"[^"*:^(){}+\s-]+"( OR "[^"*:^(){}+\s-]+")*$/);
    }),
  );
});
