import fc from 'fast-check';
import { openWords } from '../../../src/loop/warm-start/question-plan.js';
import { findAnswer, findSupports, quoteAround } from '../../../src/loop/warm-start/support.js';
import { findPhrase, namesOf, sentencesOf } from '../../../src/loop/warm-start/words.js';

const found = (text: string, phrase: string): string[] =>
  findPhrase(text, phrase).map(([start, end]) => text.slice(start, end));

describe('a phrase is found in normal form and given as it is written', () => {
  test.each([
    ['He was born in the U.S.A. in 1900.', 'USA', ['U.S.A']],
    ['"The Beatles" (band) played.', 'Beatles', ['Beatles']],
    ['A cartoon about art, they say.', 'art', ['art']],
    ['total cost (TC) describes', 'Total Cost (TC)', ['total cost (TC)']],
    ['Rome and rome', 'ROME', ['Rome', 'rome']],
    ['nothing', 'the', []],
  ])('%s: %s', (text, phrase, expected) => {
    expect(found(text, phrase)).toEqual(expected);
  });

  test('what is found equals the phrase in normal form, wherever it stands', () => {
    const word = fc.stringMatching(/^[a-z]{2,6}$/).filter((item) => item !== 'an' && item !== 'the');
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1, maxLength: 4 }),
        fc.array(word),
        fc.array(word),
        (phrase, before, after) => {
          const text = [...before, ...phrase, ...after].join(' ');
          expect(found(text, phrase.join(' '))).toContain(phrase.join(' '));
        },
      ),
    );
  });
});

test('a short alias counts only as it is written', () => {
  expect(findAnswer('They told us about it.', 'US')).toEqual([]);
  expect(findAnswer('the US army', 'US')).toHaveLength(1);
  expect(findAnswer('a politician', 'politician')).toHaveLength(1);
  expect(findAnswer('may come in may', 'May 5')).toEqual([]);
});

test('sentences end at full stops, not at initials and abbreviations', () => {
  const text = 'Norman Z. McLeod lived in St. Louis. He died in 1964. "So it was," they say.';
  expect(sentencesOf(text).map(([start, end]) => text.slice(start, end))).toEqual([
    'Norman Z. McLeod lived in St. Louis.',
    'He died in 1964.',
    '"So it was," they say.',
  ]);
});

test('sentences cover a text but for the space between them', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('a', 'B', '.', '!', ' ', '\n', '"', '1') }), (text) => {
      const parts = sentencesOf(text);
      const joined = parts.map(([start, end]) => text.slice(start, end)).join('');
      expect(joined.replace(/\s/g, '')).toBe(text.replace(/\s/g, ''));
    }),
  );
});

test('names are runs of capitalised words with small words inside', () => {
  expect(namesOf('a film directed by Géza von Bolváry in the old Kingdom of Sicily')).toEqual([
    'Kingdom of Sicily',
    'Géza von Bolváry',
  ]);
});

test('what a question leaves open: its telling words that are not yet known', () => {
  expect(
    openWords(
      'What is the place of birth of the director of film Oro Bajo?',
      'Oro bajo Oro bajo is a 1956 Argentine film directed by Mario Soffici',
    ),
  ).toBe('place of birth');
  expect(openWords('Who is he?', '')).toBe('');
});

test('a long sentence is quoted from a clause border on, and always holds the place', () => {
  const sentence = `${'One clause of words, '.repeat(30)}and there is Lisbon, ${'and more of it, '.repeat(30)}end.`;
  const at = sentence.indexOf('Lisbon');
  const quote = quoteAround(sentence, [at, at + 6]);
  expect(quote).toContain('Lisbon');
  expect(sentence).toContain(quote);
  expect(quote.split(' ').length).toBeLessThanOrEqual(60);
});

test('the best place of an answer is the one that speaks of the question', () => {
  const passages = [
    { index: 1, title: 'Wine', text: 'Lisbon exports wine. Porto does too.' },
    { index: 2, title: 'Portugal', text: 'The country is old. Its capital is Lisbon. It is warm.' },
  ];
  const [best] = findSupports(passages, 'What is the capital of Portugal?', ['Lisboa', 'Lisbon']);
  expect(best).toMatchObject({ quote: 'Its capital is Lisbon.', answer: 'Lisbon', passage: { index: 2 } });
});

test('the shortest gold answer is taken, and whole where it goes on without a comma', () => {
  const passage = (text: string) => [{ index: 1, title: 'T', text }];
  const answerIn = (text: string, ...golds: string[]) => findSupports(passage(text), 'q', golds)[0]?.answer;
  expect(answerIn('Born in Mexico City in May.', 'Mexico City', 'Mexico')).toBe('Mexico City');
  expect(answerIn('Born in Barcelona, Spain.', 'Barcelona, Spain', 'Barcelona')).toBe('Barcelona');
});
