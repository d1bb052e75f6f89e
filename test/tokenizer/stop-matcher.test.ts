import fc from 'fast-check';
import { createStopMatcher } from '../../src/tokenizer/index.js';

interface Outcome {
  readonly text: string;
  readonly matched: string | null;
}

/** Feeds pieces as a stream would come, until a match, and checks that nothing is taken back. */
function streamed(stops: readonly string[], pieces: readonly string[]): Outcome {
  const matcher = createStopMatcher(stops);
  let text = '';
  for (const piece of pieces) {
    const { safe, matched } = matcher.push(piece);
    text += safe;
    if (matched !== null) {
      expect(matcher.push('more')).toEqual({ safe: '', matched: null });
      expect(matcher.flush()).toBe('');
      expect(matcher.matched).toBe(matched);
      return { text, matched };
    }
  }
  text += matcher.flush();
  return { text, matched: matcher.matched };
}

/** The rule itself, over the whole text: first start, then first end. */
function searched(stops: readonly string[], text: string): Outcome {
  const found = stops
    .filter((stop) => stop !== '' && text.includes(stop))
    .map((stop) => ({ stop, start: text.indexOf(stop) }))
    .sort((a, b) => a.start - b.start || a.stop.length - b.stop.length)[0];
  return found === undefined
    ? { text, matched: null }
    : { text: text.slice(0, found.start), matched: found.stop };
}

test('equals a search over the whole text, however the text is cut', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', '<', '/'), maxLength: 5 });
  const stops = fc.array(word, { maxLength: 4 });
  const pieces = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '<', '/'), maxLength: 6 }), {
    maxLength: 12,
  });
  fc.assert(
    fc.property(stops, pieces, (someStops, somePieces) => {
      expect(streamed(someStops, somePieces)).toEqual(searched(someStops, somePieces.join('')));
    }),
    { numRuns: 3000 },
  );
});

test('holds back no more than the longest open stop string', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 40 });
  fc.assert(
    fc.property(text, (whole) => {
      const stops = ['abcab', 'bcc'];
      const matcher = createStopMatcher(stops);
      let given = '';
      for (const [index, unit] of [...whole].entries()) {
        const { safe, matched } = matcher.push(unit);
        given += safe;
        if (matched !== null) return;
        const open = whole.slice(given.length, index + 1);
        expect(stops.some((stop) => stop.startsWith(open))).toBe(true);
      }
    }),
  );
});

test.each([
  [['DEFGHIJ'], ['DEF', 'G', 'HI', 'J'], { text: '', matched: 'DEFGHIJ' }],
  [['</search>'], ['who</', 'sea', 'rch', '>'], { text: 'who', matched: '</search>' }],
  [['beta gamma'], ['alpha ', 'beta', ' gam', 'ma', ' delta'], { text: 'alpha ', matched: 'beta gamma' }],
  [['five'], ['four, ', 'five, six'], { text: 'four, ', matched: 'five' }],
  [['abcd', 'bc'], ['a', 'bc', 'x'], { text: 'a', matched: 'bc' }],
  [['abcd', 'bc'], ['abc'], { text: 'a', matched: 'bc' }],
  [['abcd', 'bc'], ['abc', 'd'], { text: '', matched: 'abcd' }],
  [['ab', 'abc'], ['abc'], { text: '', matched: 'ab' }],
  [[], ['a', 'b'], { text: 'ab', matched: null }],
  [[''], ['a'], { text: 'a', matched: null }],
  [['\u{1f600}'], ['x\ud83d', '\ude00'], { text: 'x', matched: '\u{1f600}' }],
])('%j in %j', (stops, pieces, outcome) => {
  expect(streamed(stops, pieces)).toEqual(outcome);
});

test('time is linear for stop strings that nearly repeat', () => {
  const stops = [`${'a'.repeat(2000)}b`, `${'a'.repeat(1000)}c`];
  const text = 'a'.repeat(400_000);
  expect(streamed(stops, [text])).toEqual({ text, matched: null });
});
