// By hand: two questions of four answers each.

import { markdownReport, type QuestionResult, reportOf } from '../../src/evaluation/index.js';
import { questionResult } from './support/result.js';

const sample = (id: string, number: number, answer: string | null, em: 0 | 1): QuestionResult =>
  questionResult(id, em, {
    sample: number,
    dataset: id.startsWith('a') ? 'one' : 'two',
    questionDigest: id,
    answer,
  });

const known = ([] as QuestionResult[]).concat(
  // Equal in normal form.
  [
    sample('a', 0, 'Lisbon', 1),
    sample('a', 1, 'the lisbon', 1),
    sample('a', 2, 'Porto', 0),
    sample('a', 3, null, 0),
  ],
  [0, 1, 2, 3].map((number) => sample('b', number, 'Oslo', 0)),
);
const about = { digest: 'd'.repeat(64), settings: {} };

test('pass@k and maj@k are means over questions, at powers of two and at all samples', () => {
  const { sampled, overall, sets, averageEm } = reportOf(known, about);
  expect(sampled?.map(({ name, questions, samples }) => [name, questions, samples])).toEqual([
    ['one', 1, 4],
    ['two', 1, 4],
    ['overall', 2, 4],
  ]);
  const [one, two, all] = (sampled ?? []).map(({ atK }) =>
    atK.map(({ k, pass, maj }) => [k, pass.mean, maj.mean]),
  );
  // Of the six pairs one holds no right answer; Lisbon has the vote in three, half of it in two.
  expect(one).toEqual([
    [1, 0.5, expect.closeTo(0.5, 9)],
    [2, expect.closeTo(5 / 6, 9), expect.closeTo(4 / 6, 9)],
    [4, 1, expect.closeTo(1, 9)],
  ]);
  expect(two?.flatMap(([, pass, maj]) => [pass, maj])).toEqual([0, 0, 0, 0, 0, 0]);
  expect(all?.map(([k, pass]) => [k, pass])).toEqual([
    [1, 0.25],
    [2, expect.closeTo(5 / 12, 9)],
    [4, 0.5],
  ]);
  expect(overall).toMatchObject({ questions: 2, em: { mean: 0.25, low: 0, high: 0.5 } });
  expect(sets.map(({ questions, em }) => [questions, em.mean])).toEqual([
    [1, 0.5],
    [1, 0],
  ]);
  expect(averageEm).toBe(0.25);
});

test('a fit needs three k, and no pass@k of 0 or 1', () => {
  const { sampled } = reportOf(known, about);
  const [one, two, all] = sampled ?? [];
  expect([one?.fit, two?.fit]).toEqual([null, null]);
  expect(all?.fit?.a).toBeCloseTo(Math.log(0.25), 1);
  expect(all?.fit?.b).toBeLessThan(0);
  const fewer = reportOf(
    known.filter(({ sample: number }) => number !== undefined && number < 2),
    about,
  );
  expect(fewer.sampled?.map(({ atK, fit }) => [atK.length, fit])).toEqual([
    [2, null],
    [2, null],
    [2, null],
  ]);
});

test('k goes up to all samples where that is no power of two', () => {
  const three = known.filter(({ sample: number }) => number !== 3);
  expect(reportOf(three, about).sampled?.[0]?.atK.map(({ k }) => k)).toEqual([1, 2, 3]);
  const single = known.filter(({ sample: number }) => number === 0);
  expect(reportOf(single, about).sampled?.[0]?.atK.map(({ k }) => k)).toEqual([1]);
});

test('the interval is one over questions: samples of one question are no questions', () => {
  const questions = Array.from({ length: 20 }, (_, q) =>
    Array.from({ length: 50 }, (_, number) => sample(`a${q}`, number, 'x', q % 2 === 0 ? 1 : 0)),
  ).flat();
  const { em } = reportOf(questions, about).overall;
  expect(em.mean).toBe(0.5);
  // The standard error of 20 coins is 0.11; of 1,000 it would be 0.016.
  expect(em.high - em.low).toBeGreaterThan(0.3);
});

test('tables say it, and greedy ones do not', () => {
  const table = markdownReport(reportOf(known, about));
  expect(table).toMatch(/^\| overall \| 2 \| 0\.417 \| 0\.000 to 0\.833 \| 0\.333 \|/m);
  expect(table).toMatch(
    /^overall: log pass@k = a k\^b with a = -1\.\d{3} \(standard error 0\.\d{3}\), b = -0/m,
  );
  expect(table).not.toMatch(/^one: log/m);
  const greedy = known.slice(0, 1).map(({ sample: _sample, ...result }) => result);
  expect(reportOf(greedy, about)).not.toHaveProperty('sampled');
  expect(markdownReport(reportOf(greedy, about))).not.toContain('pass@k');
});
