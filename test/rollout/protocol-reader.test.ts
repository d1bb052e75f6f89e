import fc from 'fast-check';
import { createProtocolReader } from '../../src/rollout/protocol-reader.js';
import type { Action, TurnReader } from '../../src/rollout/turn-reader.js';
import { createWholeReader } from '../../src/rollout/whole-reader.js';
import { PROTOCOL_TAGS } from '../../src/trajectory/index.js';

/** The action of a turn that was sampled in one piece. Without tokens to count, a query counts as one. */
function parseAction(sampledText: string, { search = true } = {}): Action {
  const reader = createProtocolReader({ search, live: false, queryTokens: 1 });
  reader.push({ text: sampledText, first: 0, last: 0 });
  reader.end(false);
  return reader.action;
}

describe('the action of a turn', () => {
  const cases: [string, Action][] = [
    ['<search>q</search>', { kind: 'search', query: 'q' }],
    ['<search> \n two words\t</search>', { kind: 'search', query: 'two words' }],
    ['<think>x</think>\n<search>q</search> more', { kind: 'search', query: 'q' }],
    ['<think>no end <search>q</search>', { kind: 'search', query: 'q' }],
    ['<search>a < b > c</search>', { kind: 'search', query: 'a < b > c' }],
    ['<search>q</ search></search>', { kind: 'search', query: 'q</ search>' }],
    ['<answer>a</answer>', { kind: 'answer' }],
    ['<answer></answer>', { kind: 'answer' }],
    ['<answer>a</answer><search>b</search>', { kind: 'answer' }],
    ['<search></search>', { kind: 'invalid', reason: 'the query is empty' }],
    ['<search>\u3000\u0085</search>', { kind: 'invalid', reason: 'the query is empty' }],
    ['<search>a<answer>b</answer></search>', { kind: 'invalid', reason: 'tags are nested' }],
    ['<search>a</answer>', { kind: 'invalid', reason: 'tags are nested' }],
    ['<answer>a<answer>b</answer>', { kind: 'invalid', reason: 'tags are nested' }],
    ['<answer><information>a</information></answer>', { kind: 'invalid', reason: 'tags are nested' }],
    ['</search>', { kind: 'invalid', reason: '</search> closes nothing' }],
    ['<search>a', { kind: 'invalid', reason: '<search> is never closed' }],
    ['<answer>a</answer', { kind: 'invalid', reason: '<answer> is never closed' }],
    ['<SEARCH>a</SEARCH>', { kind: 'invalid', reason: 'no action' }],
    ['<search >a</search >', { kind: 'invalid', reason: 'no action' }],
    ['', { kind: 'invalid', reason: 'no action' }],
  ];
  test.each(cases)('%j', (text, action) => {
    expect(parseAction(text)).toEqual(action);
  });

  test('without search, search tags are no action and do not end the turn', () => {
    expect(parseAction('<search>q</search><answer>a</answer>', { search: false })).toEqual({
      kind: 'answer',
    });
  });
});

const fragments = fc.array(
  fc.oneof(
    fc.constantFrom<string>(...PROTOCOL_TAGS),
    fc.constantFrom(
      '<',
      '</',
      'sea',
      'rch>',
      '>',
      ' ',
      '\n',
      'a',
      'é',
      '🫠',
      '<sear',
      '</ans',
      'think>',
      'word ',
    ),
  ),
  { maxLength: 14 },
);

interface Read {
  readonly channel: string;
  text: string;
  /** The text, split at borders. */
  readonly pieces: string[];
}

/** What a reader makes of text that comes in these pieces, joined by channel. */
function readInPieces(reader: TurnReader, pieces: readonly string[], cut: boolean) {
  const runs: Read[] = [];
  const add = (readings: ReturnType<TurnReader['push']>): void => {
    for (const { channel, run, border } of readings) {
      let last = runs.at(-1);
      if (last?.channel !== channel) {
        last = { channel, text: '', pieces: [] };
        runs.push(last);
      }
      last.text += run.text;
      if (border || last.pieces.length === 0) last.pieces.push(run.text);
      else last.pieces[last.pieces.length - 1] += run.text;
    }
  };
  for (const [i, text] of pieces.entries()) add(reader.push({ text, first: i, last: i }));
  add(reader.end(cut));
  return { runs, action: reader.action, closed: reader.closed };
}

const READERS: [string, () => TurnReader][] = [
  ['protocol, live', () => createProtocolReader({ search: true, live: true, queryTokens: 1e9 })],
  ['protocol, held', () => createProtocolReader({ search: true, live: false, queryTokens: 1e9 })],
  ['protocol without search', () => createProtocolReader({ search: false, live: true, queryTokens: 1e9 })],
  ['whole', () => createWholeReader({ tags: 'all' })],
  ['chat', () => createWholeReader({ tags: 'think' })],
];

describe.each(READERS)('reader: %s', (_name, create) => {
  test('any cut of the text gives the same', () => {
    fc.assert(
      fc.property(fragments, fc.boolean(), (parts, cut) => {
        const text = parts.join('');
        const whole = readInPieces(create(), [text], cut);
        expect(readInPieces(create(), parts, cut)).toEqual(whole);
        expect(readInPieces(create(), [...text], cut)).toEqual(whole);
      }),
    );
  });

  test('no run shows a tag, and no text is invented', () => {
    fc.assert(
      fc.property(fragments, (parts) => {
        const reader = create();
        const { runs } = readInPieces(reader, parts, false);
        const shown = runs.flatMap((run) => [...run.text]);
        let rest = parts.join('');
        for (const run of runs) {
          // Pieces that a removed tag stood between are told apart by the border flag.
          for (const piece of run.pieces) expect(reader.tags.some((tag) => piece.includes(tag))).toBe(false);
        }
        for (const character of shown) {
          const at = rest.indexOf(character);
          expect(at).toBeGreaterThanOrEqual(0);
          rest = rest.slice(at + character.length);
        }
      }),
    );
  });
});

test('a turn in pieces has the action of the turn in one', () => {
  fc.assert(
    fc.property(fragments, fc.boolean(), (parts, live) => {
      const reader = createProtocolReader({ search: true, live, queryTokens: 1 });
      for (const text of parts) reader.push({ text, first: 0, last: 0 });
      reader.end(false);
      expect(reader.action).toEqual(parseAction(parts.join('')));
    }),
  );
});

test('live: an answer is shown while it is written; held: with its closing tag', () => {
  const read = (live: boolean) => {
    const reader = createProtocolReader({ search: true, live, queryTokens: 9 });
    return ['<answer>', 'Lis', 'bon', '</answer>'].map((text, i) =>
      reader.push({ text, first: i, last: i }).map(({ run }) => run.text),
    );
  };
  expect(read(true)).toEqual([[], ['Lis'], ['bon'], []]);
  expect(read(false)).toEqual([[], [], [], ['Lis', 'bon']]);
});

test('live: an answer tag inside an open think block may be a mere mention, so it is held', () => {
  const reader = createProtocolReader({ search: true, live: true, queryTokens: 9 });
  const { runs, action } = readInPieces(
    reader,
    ['<think>I must use <answer> ', 'soon</think><search>q</search>'],
    false,
  );
  expect(runs.map(({ channel }) => channel)).toEqual(['reasoning']);
  expect(action).toMatchObject({ kind: 'invalid' });
});

test('a closing tag that a limit cut in two is not shown', () => {
  const shown = (text: string, cut: boolean): string =>
    readInPieces(createWholeReader({ tags: 'all' }), [text], cut)
      .runs.map((run) => run.text)
      .join('');
  expect(shown('Lisbon</ans', true)).toBe('Lisbon');
  expect(shown('Lisbon</ans', false)).toBe('Lisbon');
  expect(shown('1 <', true)).toBe('1 ');
  expect(shown('1 <', false)).toBe('1 <');
  expect(shown('a <b', true)).toBe('a <b');
});
