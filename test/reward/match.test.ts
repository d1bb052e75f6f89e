import fc from 'fast-check';
import {
  exactMatch,
  f1Score,
  fingerprintMatch,
  fingerprintOf,
  matchingGold,
  subExactMatch,
} from '../../src/reward/index.js';
import { readJson } from '../support/fixtures.js';

interface Case {
  prediction: string | null;
  golds: string[];
  ours: { em: number; subEm: number; f1: number };
}

test('exact match, part match and F1 are those of the stored cases', () => {
  const { cases } = readJson('answers', 'match.json') as { cases: Case[] };
  expect(cases).toHaveLength(117);
  for (const { prediction, golds, ours } of cases) {
    const em = exactMatch(prediction, golds);
    const subEm = subExactMatch(prediction, golds);
    expect({ prediction, golds, em, subEm }).toEqual({ prediction, golds, em: ours.em, subEm: ours.subEm });
    expect(Math.abs(f1Score(prediction, golds) - ours.f1)).toBeLessThan(1e-9);
  }
});

test('a gold answer that is an article alone is matched as written, and nothing else is', () => {
  expect(exactMatch('A', ['A'])).toBe(1);
  expect(exactMatch('anything', ['A'])).toBe(0);
  expect(exactMatch('', ['A'])).toBe(0);
  expect(exactMatch('', [''])).toBe(0);
  expect(subExactMatch('anything', [''])).toBe(0);
});

test('a fingerprint matches as the answer does', () => {
  const { cases } = readJson('answers', 'match.json') as { cases: Case[] };
  const texts = ['A', 'an', '', ' ', 'the', '.', 'x', 'X.', 'the x'];
  const odd = texts.flatMap((prediction) => texts.map((gold) => ({ prediction, golds: [gold] })));
  for (const { prediction, golds } of [...cases, ...odd]) {
    const fingerprint = prediction === null ? null : fingerprintOf(prediction);
    const match = fingerprintMatch(fingerprint, golds);
    expect({ prediction, golds, match }).toEqual({ prediction, golds, match: exactMatch(prediction, golds) });
  }
});

test('the matching gold answer is named', () => {
  expect(matchingGold('the paris', ['London', 'Paris', 'PARIS'])).toBe('Paris');
  expect(matchingGold('Rome', ['London'])).toBeNull();
});

test('an exact match has every other measure too', () => {
  const answer = fc.string({
    unit: fc.constantFrom('a', 'the', ' ', 'x', 'é', '.', '\u0085', 'A'),
    maxLength: 12,
  });
  fc.assert(
    fc.property(answer, fc.array(answer, { maxLength: 3 }), (prediction, golds) => {
      const f1 = f1Score(prediction, golds);
      expect(f1).toBeGreaterThanOrEqual(0);
      expect(f1).toBeLessThanOrEqual(1);
      if (exactMatch(prediction, golds) === 1 && f1 > 0) {
        expect(f1).toBe(1);
        expect(subExactMatch(prediction, golds)).toBe(1);
      }
    }),
  );
});
