import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import {
  extractAnswer,
  leadingSpaceLength,
  normaliseAnswer,
  trailingSpaceLength,
  trimSpace,
} from '../../src/trajectory/index.js';

const cases = <T>(name: string): T[] =>
  (JSON.parse(readFileSync(join(__dirname, '..', 'fixtures', 'answers', name), 'utf8')) as { cases: T[] })
    .cases;

test('extracts the answer as the stored cases say', () => {
  const stored = cases<{ text: string; ours: string | null }>('extract.json');
  expect(stored).toHaveLength(42);
  for (const { text, ours } of stored)
    expect({ text, answer: extractAnswer(text) }).toEqual({ text, answer: ours });
});

test('normalises as the stored cases say', () => {
  const stored = cases<{ text: string; ours: string }>('normalise.json');
  expect(stored).toHaveLength(118);
  for (const { text, ours } of stored)
    expect({ text, normalised: normaliseAnswer(text) }).toEqual({ text, normalised: ours });
});

test('any run of white space becomes one blank', () => {
  const unit = fc.constantFrom(
    ' ',
    '  ',
    '\n',
    '\t',
    '\u001c',
    '\u0085',
    '\u00a0',
    '\u3000',
    '\ufeff',
    'x',
    'Y.',
    'the',
  );
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 20 }), (text) => {
      const spaces = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g;
      const words = text
        .toLowerCase()
        .replaceAll('.', '')
        .replace(/(?<!\w)the(?!\w)/g, ' ');
      expect(normaliseAnswer(text)).toBe(words.replace(spaces, ' ').replace(/^ | $/g, ''));
    }),
  );
});

test('normalising is idempotent where no punctuation joins an article', () => {
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a-z0-9]{1,6}$/)), (words) => {
      const once = normaliseAnswer(words.join(' '));
      expect(normaliseAnswer(once)).toBe(once);
    }),
  );
});

test('trimming takes exactly the space at both ends', () => {
  const space = fc.string({ unit: fc.constantFrom(' ', '\n', '\u0085', '\u00a0', '\u3000', '\u001f') });
  fc.assert(
    fc.property(space, fc.stringMatching(/^[a-z]([a-z ]*[a-z])?$/), space, (before, core, after) => {
      const text = before + core + after;
      expect(trimSpace(text)).toBe(core);
      expect(leadingSpaceLength(text)).toBe(before.length);
      expect(trailingSpaceLength(text)).toBe(after.length);
      expect(trimSpace(before + after)).toBe('');
    }),
  );
  expect(trimSpace('\ufeffa\u200b')).toBe('\ufeffa\u200b');
});
