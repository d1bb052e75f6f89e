import { wikitextPassages } from '../../../src/retrieval/wikipedia/wikitext.js';

const passages = (wikitext: string): string[] | null => wikitextPassages(wikitext, 'Title', 10_000);

test.each([
  ['', []],
  ['#REDIRECT [[Elsewhere]]', []],
  ['{{Infobox|a={{b|{{c}}}}}}', []],
  ["'''Bold''' and ''slanted'' [[link|words]].", ['Bold and slanted words.']],
  ['Before.<ref>Not this.</ref> After.<ref name="a" />', ['Before. After.']],
  ['{| class="wikitable"\n| cell\n|}\nText after.', ['Text after.']],
  ['[[File:A.jpg|thumb|caption]]\nText.\n[[Category:Things]]', ['Text.']],
  ['Text.\n== See also ==\n* [[Other]]\n== Also read ==\nMore.', ['Text. More.']],
  ['* first\n* second\n# third', ['first second third']],
  ['A &lt; B &amp; C [http://example.org label].', ['A < B & C label.']],
])('%j', (wikitext, expected) => {
  expect(passages(wikitext)).toEqual(expected);
});

test('passages have about 100 words and end where a sentence ends', () => {
  const found = passages('One two three four five six seven. '.repeat(60)) as string[];
  expect(found.map((text) => text.split(' ').length)).toEqual([105, 105, 105, 105]);
  expect(found.every((text) => text.endsWith('seven.'))).toBe(true);
});

test('a text that takes too long is given up, and the next one is read', () => {
  expect(wikitextPassages('{{'.repeat(50_000), 'Title', 200)).toBeNull();
  expect(passages('One sentence.')).toEqual(['One sentence.']);
});
