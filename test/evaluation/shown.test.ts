import { isYesNo, shownPart } from '../../src/evaluation/index.js';
import { holdsAnswer } from '../../src/evaluation/shown.js';

test('the shown part of a passage is the beginning that the observation holds', () => {
  const text = 'Lisbon is the capital of Portugal. It lies on the river Tagus.';
  expect(shownPart(text, `Doc 1(Title: Lisbon) ${text}\n`)).toBe(text);
  expect(shownPart(text, 'Doc 1(Title: Lisbon) Lisbon is the capital of Por\nDoc 2')).toBe(
    'Lisbon is the capital of Por',
  );
});

test('a passage that was left out is not shown, though its first letters stand somewhere', () => {
  expect(shownPart('Porto is a harbour town.', 'Doc 1(Title: Portugal) Por')).toBe('');
  expect(shownPart('Oslo', 'Doc 1(Title: X) Oslo')).toBe('Oslo');
});

test('an answer counts on whole words only', () => {
  expect(holdsAnswer('He painted art.', ['art'])).toBe(true);
  expect(holdsAnswer('A cartoon.', ['art'])).toBe(false);
  expect(holdsAnswer('It was the U.S.A. then', ['USA'])).toBe(true);
  expect(holdsAnswer('anything', ['the', ''])).toBe(false);
});

test('yes and no stand in no passage', () => {
  expect(isYesNo(['Yes', ' no'])).toBe(true);
  expect(isYesNo(['yes', 'Norway'])).toBe(false);
  expect(isYesNo([])).toBe(false);
});
