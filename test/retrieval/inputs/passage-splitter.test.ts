import fc from 'fast-check';
import { createPassageSplitter } from '../../../src/retrieval/inputs/passage-splitter.js';

/** Passages of one text whose paragraphs are separated by blank lines. */
function splitText(text: string, words?: number): string[] {
  const splitter = createPassageSplitter(words);
  const full = text
    .split(/\n\s*\n/)
    .flatMap((paragraph) => splitter.add(paragraph.replace(/\s+/g, ' ').trim()));
  return [...full, ...splitter.end()];
}

const words = (text: string): number => text.split(/\s+/).length;

test('passages end where a sentence ends, at 100 words or a little more', () => {
  const sentence = 'One two three four five six seven eight nine ten eleven twelve. ';
  const parts = splitText(sentence.repeat(30));
  expect(parts.map(words)).toEqual([108, 108, 108, 36]);
  expect(parts.every((part) => part.endsWith('.'))).toBe(true);
});

test('a text without sentences or spaces is cut too, never inside a character', () => {
  expect(splitText('word '.repeat(1000)).every((part) => words(part) <= 320)).toBe(true);
  const faces = splitText('😀'.repeat(2000));
  expect(faces.length).toBeGreaterThan(1);
  expect(faces.join('')).toBe('😀'.repeat(2000));
  expect(faces.every((part) => part === Buffer.from(part).toString())).toBe(true);
  expect(splitText('日本の歴史。'.repeat(500)).every((part) => part.length <= 1700)).toBe(true);
});

test('a line of 16 MiB without spaces is cut in time', () => {
  const text = 'x'.repeat(16 << 20);
  const parts = createPassageSplitter().add(text);
  expect(parts).toHaveLength(Math.floor(text.length / 800));
  expect(new Set(parts.map(({ length }) => length))).toEqual(new Set([800]));
});

test('a long sentence is cut at the last space that fits', () => {
  const { add, end } = createPassageSplitter(2);
  const [a, b] = ['a'.repeat(16), 'b'.repeat(16)];
  expect(add(`${a} ${b} ccccc ccccc ccccc`)).toEqual([a, b, 'ccccc ccccc']);
  expect(end()).toEqual(['ccccc']);
});

test('short and empty texts', () => {
  expect(splitText('')).toEqual([]);
  expect(splitText(' \n\n ')).toEqual([]);
  expect(splitText('One.\n\nTwo.')).toEqual(['One. Two.']);
});

test('no word is lost, doubled or moved', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 3000 }),
      fc.integer({ min: 1, max: 30 }),
      (text, size) => {
        expect(splitText(text, size).join('').replace(/\s/g, '')).toBe(text.replace(/\s/g, ''));
      },
    ),
  );
});
