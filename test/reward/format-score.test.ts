import fc from 'fast-check';
import { type FormatPart, formatParts, formatScore } from '../../src/reward/index.js';
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
