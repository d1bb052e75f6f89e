import { compareResults, markdownComparison } from '../../src/evaluation/index.js';
import { questionResult } from './support/result.js';

const result = (id: string, em: 0 | 1, dataset = 'nq') => questionResult(id, em, { dataset });

const many = (count: number, em: (i: number) => 0 | 1, dataset?: string) =>
  Array.from({ length: count }, (_, i) => result(`${dataset}-${i}`, em(i), dataset));

test('pairs are made by question; those without a partner are counted', () => {
  const first = [...many(40, (i) => (i < 30 ? 1 : 0), 'a'), ...many(10, () => 1, 'b')];
  const second = [...many(40, (i) => (i < 10 ? 1 : 0), 'a').reverse(), result('alone', 1)];
  const comparison = compareResults(first, second);
  expect(comparison.unpaired).toBe(11);
  expect(comparison.sets.map(({ name }) => name)).toEqual(['a']);
  const { overall } = comparison;
  expect(overall).toMatchObject({ questions: 40, firstEm: 0.75, secondEm: 0.25 });
  expect(overall.mcnemar).toMatchObject({ onlyFirstRight: 20, onlySecondRight: 0 });
  expect(overall.mcnemar?.exactP).toBeLessThan(1e-5);
  expect(overall.difference.mean).toBeCloseTo(0.5, 12);
  expect(overall.difference.low).toBeGreaterThan(0.3);
  expect(overall.difference.firstBetter).toBe(1);
  expect(markdownComparison(comparison, ['ours', 'rag'])).toMatch(
    /\| overall \| 40 \| 0\.750 \| 0\.250 \| \+0\.500 \|/,
  );
});

test('the same results do not differ', () => {
  const results = many(50, (i) => (i % 3 === 0 ? 1 : 0), 'a');
  const { overall } = compareResults(results, results);
  expect(overall.difference).toEqual({ mean: 0, low: 0, high: 0, firstBetter: 0 });
  expect(overall.mcnemar?.exactP).toBe(1);
});

test('a question counts once, with its last result; another wording under the same id is no partner', () => {
  const first = [result('a', 0), result('b', 1), result('a', 1)];
  const second = [result('a', 1), result('b', 0), { ...result('c', 1), questionDigest: 'x' }];
  expect(compareResults(first, second)).toMatchObject({
    unpaired: 1,
    overall: { questions: 2, firstEm: 1, secondEm: 0.5 },
  });
  const reworded = [...first, { ...result('c', 0), questionDigest: 'y' }];
  expect(compareResults(reworded, second)).toMatchObject({ unpaired: 2, overall: { questions: 2 } });
  // Results of earlier versions say nothing of the wording.
  expect(compareResults([...first, result('c', 0)], second).overall.questions).toBe(3);
});

test('samples of a question count by their mean, and questions are what is resampled', () => {
  const samples = (id: string, ems: readonly (0 | 1)[]) =>
    ems.map((em, sample) => ({ ...result(id, em), sample }));
  const first = [...samples('a', [1, 1, 0, 0]), ...samples('b', [1, 1, 1, 0]), ...samples('c', [1])];
  const second = [result('b', 0), result('a', 1), ...samples('c', [1, 0])];
  const { overall, unpaired } = compareResults(first, second);
  expect(unpaired).toBe(0);
  expect(overall).toMatchObject({ questions: 3, mcnemar: null });
  expect(overall.firstEm).toBeCloseTo(0.75, 12);
  expect(overall.secondEm).toBeCloseTo(0.5, 12);
  expect(overall.difference.mean).toBeCloseTo((-0.5 + 0.75 + 0.5) / 3, 12);
  // Of three resampled questions each mean is one of the three differences at the farthest.
  expect(overall.difference.low).toBeGreaterThanOrEqual(-0.5);
  expect(overall.difference.high).toBeLessThanOrEqual(0.75);
  expect(markdownComparison(compareResults(first, second), ['a', 'b'])).toMatch(/\| - \| - \|$/m);
  // One sample of each is a right or a wrong one.
  const { mcnemar } = compareResults(samples('a', [1]), [result('a', 0)]).overall;
  expect(mcnemar).toMatchObject({ onlyFirstRight: 1, onlySecondRight: 0 });
});

test('samples of an earlier wording of a question do not count', () => {
  const earlier = [0, 1, 2].map((sample) => ({ ...result('a', 0), sample, questionDigest: 'x' }));
  const now = [0, 1].map((sample) => ({ ...result('a', 1), sample, questionDigest: 'y' }));
  const other = [{ ...result('a', 0), questionDigest: 'y' }];
  expect(compareResults([...earlier, ...now], other).overall.firstEm).toBe(1);
});

test('nothing in common is an error', () => {
  expect(() => compareResults([result('a', 1)], [result('b', 1)])).toThrow(/no question in common/);
});
