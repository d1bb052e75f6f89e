import fc from 'fast-check';
import { type FormatPart, type FormatScore, formatParts, formatScore } from '../../src/reward/index.js';
import { PROTOCOL_TAGS, trimSpace } from '../../src/trajectory/index.js';
import { readJson } from '../support/fixtures.js';
import { createPieceTokenizer } from '../support/piece-tokenizer.js';
import { createKit, doneOf } from '../support/rollout-kit.js';

interface Case {
  segments: { origin: 'policy' | 'environment'; text: string }[];
  score: number;
  wellFormed: boolean;
}

const partOf = ({ origin, text }: Case['segments'][number]): FormatPart => {
  if (origin === 'policy') return { kind: 'sampled', text };
  return { kind: text.trim().startsWith('<information>') ? 'information' : 'other' };
};

test('the score is that of the stored cases', () => {
  const { cases } = readJson('answers', 'format.json') as { cases: Case[] };
  expect(cases).toHaveLength(64);
  for (const { segments, score, wellFormed } of cases) {
    const got = formatScore(segments.map(partOf));
    expect({ segments, wellFormed: got.wellFormed }).toEqual({ segments, wellFormed });
    expect(Math.abs(got.score - score)).toBeLessThan(1e-9);
  }
});

async function scoreOf(turns: readonly string[]) {
  const kit = createKit({ turns });
  const { record } = doneOf(await kit.events());
  return { record, ...formatScore(formatParts(record, kit.tokenizer)) };
}

test('a real rollout: searches, observations and turns are told apart by the record', async () => {
  const { score, record } = await scoreOf([
    '<think>look it up</think><search>capital of Portugal</search>',
    '<think>Lisbon it is</think><answer>Lisbon</answer>',
  ]);
  expect(record.searches).toHaveLength(1);
  expect(score).toBe(1);
});

test('an invalid turn and its corrective observation are no form', async () => {
  const { score } = await scoreOf(['<think>hm', '<think>Lisbon it is</think><answer>Lisbon</answer>']);
  expect(score).toBe(0);
});

test('text that the last token carries beyond the closing tag is not looked at', async () => {
  const tokenizer = createPieceTokenizer();
  const turn = [...tokenizer.encodePlain('<think>x</think><answer>Lisbon</answer'), tokenizer.piece('>.')];
  const kit = createKit({ tokenizer, turns: [turn] });
  const { record } = doneOf(await kit.events());
  expect(record.answer).toBe('Lisbon');
  expect(formatScore(formatParts(record, tokenizer)).score).toBe(0.5);
});

test('what stands in a passage never changes the score', () => {
  const open: FormatPart = { kind: 'sampled', text: '<think>a</think><search>q</search>' };
  const answer: FormatPart = { kind: 'sampled', text: '<think>b</think><answer>c</answer>' };
  expect(formatScore([open, { kind: 'information' }, answer]).score).toBe(1);
  expect(formatScore([open, { kind: 'other' }, answer]).score).toBe(0);
});

test('the score of any text lies between 0 and 1', () => {
  const piece = fc.constantFrom(
    '<think>',
    '</think>',
    '<search>',
    '</search>',
    '<information>',
    '</information>',
    '<answer>',
    '</answer>',
    'x',
    ' ',
    '\n',
    '<',
    '>',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 24 }), (pieces) => {
      const { score, wellFormed } = formatScore([{ kind: 'sampled', text: pieces.join('') }]);
      expect(score).toBeGreaterThanOrEqual(0);
      expect(score).toBeLessThanOrEqual(1);
      expect(wellFormed).toBe(score > 0);
    }),
    { numRuns: 300 },
  );
});

/** The definition as it reads, by patterns; they go through the rest of a text for each tag that stays open. */
function plainScore(parts: readonly FormatPart[]): FormatScore {
  const none = { score: 0, wellFormed: false };
  const passages = { information: '<information>passages</information>', other: ' ' } as const;
  const text = trimSpace(
    parts.map((part) => (part.kind === 'sampled' ? part.text : passages[part.kind])).join(''),
  );
  const tags: string[] = text.match(/<[^>]*>/g) ?? [];
  if (!text.startsWith('<think>') || !text.endsWith('</answer>') || tags.length < 4) return none;
  if (!tags.every((tag) => (PROTOCOL_TAGS as readonly string[]).includes(tag))) return none;
  if (tags[1] !== '</think>' || tags.at(-2) !== '<answer>') return none;
  if (!tags.every((tag, i) => tag !== '</search>' || tags[i + 1] === '<information>')) return none;
  const isFilled = (block: string, words: string): boolean =>
    [...text.matchAll(new RegExp(`<${block}>([\\s\\S]*?)</${block}>`, 'g'))].every(
      ([, content = '']) =>
        trimSpace(content) !== '' &&
        !(block === 'search' && content.includes('\n')) &&
        !content.toLowerCase().includes(words),
    );
  const blocks = { think: 'your thoughts', search: 'your query', information: 'your information' };
  if (!Object.entries({ ...blocks, answer: 'your answer' }).every((block) => isFilled(...block))) return none;
  const count = (tag: string): number => tags.filter((item) => item === tag).length;
  const [thinks, turns] = [count('<think>'), count('<search>') + 1];
  if (turns - 1 !== count('<information>') || thinks > 8) return none;
  const score = Math.min(1, thinks / 2) * (Math.min(thinks, turns) / Math.max(thinks, turns));
  return { score, wellFormed: score > 0 };
}

test('any soup of tags, words and our own parts has the score of the plain definition', () => {
  const think = '<think>a</think>';
  const search = '<search>q</search>';
  const answer = '<answer>c</answer>';
  const soup = fc.constantFrom(
    ...[
      think,
      search,
      answer,
      ...PROTOCOL_TAGS,
      '<',
      '>',
      '<b>',
      ' ',
      '\n',
      '\u0085',
      'x',
      '<think> </think>',
    ],
    ...['Your thoughts', 'your query', 'your answer', `${think}${search}`, `${think}${answer}`],
  );
  const part: fc.Arbitrary<FormatPart> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('sampled' as const), text: soup }) },
    fc.constantFrom<FormatPart>({ kind: 'information' }, { kind: 'other' }),
  );
  const sampled = (text: string): FormatPart => ({ kind: 'sampled', text });
  const turn = fc.tuple(
    fc.constant(sampled(`${think}${search}`)),
    fc.constant<FormatPart>({ kind: 'information' }),
  );
  let wellFormed = 0;
  fc.assert(
    fc.property(
      fc.array(fc.oneof({ weight: 3, arbitrary: turn }, fc.array(part, { maxLength: 2 })), { maxLength: 5 }),
      fc.boolean(),
      (turns, isEnded) => {
        const parts = [...turns.flat(), ...(isEnded ? [sampled(`${think}${answer}`)] : [])];
        const score = formatScore(parts);
        expect(score).toEqual(plainScore(parts));
        if (score.wellFormed) wellFormed++;
      },
    ),
    { numRuns: 2000 },
  );
  expect(wellFormed).toBeGreaterThan(100);
});

test('tags and brackets that stay open, without number, cost no more than their length', () => {
  const ends = (middle: string): FormatPart[] => [
    { kind: 'sampled', text: `<think>a</think>${middle}<answer>c</answer>` },
  ];
  expect(formatScore(ends('<search>'.repeat(300_000))).score).toBe(0);
  expect(formatScore(ends('<'.repeat(1_000_000))).score).toBe(0);
  expect(formatScore(ends(' '.repeat(1_000_000))).score).toBe(0.5);
  // Some hundredths of a second; minutes where each goes through the rest.
}, 20_000);
