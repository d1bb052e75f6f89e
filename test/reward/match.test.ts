import fc from 'fast-check';
import { exactMatch, fingerprintMatch, fingerprintOf } from '../../src/reward/index.js';
import { compareAnswer } from '../../src/reward/match.js';
import { normaliseAnswer } from '../../src/trajectory/index.js';
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
    const { em, subEm, f1 } = compareAnswer(prediction, golds);
    expect({ prediction, golds, em, subEm }).toEqual({ prediction, golds, em: ours.em, subEm: ours.subEm });
    expect(exactMatch(prediction, golds)).toBe(em);
    expect(Math.abs(f1 - ours.f1)).toBeLessThan(1e-9);
  }
});

test('a gold answer that is an article alone is matched as written, and nothing else is', () => {
  expect(exactMatch('A', ['A'])).toBe(1);
  expect(exactMatch('anything', ['A'])).toBe(0);
  expect(exactMatch('', ['A'])).toBe(0);
  expect(exactMatch('', [''])).toBe(0);
  expect(compareAnswer('anything', ['']).subEm).toBe(0);
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

const answer = fc.string({
  unit: fc.constantFrom('a', 'the', ' ', 'x', 'é', '.', '\u0085', 'A'),
  maxLength: 12,
});
const golds = fc.array(answer, { maxLength: 3 });

test('an exact match has every other measure too', () => {
  fc.assert(
    fc.property(answer, golds, (prediction, golds) => {
      const { em, subEm, f1 } = compareAnswer(prediction, golds);
      expect(f1).toBeGreaterThanOrEqual(0);
      expect(f1).toBeLessThanOrEqual(1);
      if (em === 1 && f1 > 0) expect({ f1, subEm }).toEqual({ f1: 1, subEm: 1 });
    }),
  );
});

test('words in common are those that are left when each was taken once', () => {
  const plain = (prediction: string, gold: string): number => {
    const [words, left] = [prediction, gold].map((text) => normaliseAnswer(text).split(' ').filter(Boolean));
    const [all, size] = [(words ?? []).length, (left ?? []).length];
    let same = 0;
    for (const word of words ?? []) {
      const at = left?.indexOf(word) ?? -1;
      if (at >= 0) same += left?.splice(at, 1).length ?? 0;
    }
    return same === 0 ? 0 : (2 * same) / (all + size);
  };
  fc.assert(
    fc.property(answer, golds, (prediction, golds) => {
      const best = Math.max(0, ...golds.map((gold) => plain(prediction, gold)));
      expect(compareAnswer(prediction, golds).f1).toBe(best);
    }),
  );
});
