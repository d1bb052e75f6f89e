import { createGrader, type GraderSettings } from '../../../src/loop/online/rewards.js';
import type { Scorer } from '../../../src/reward/index.js';
import { makeRecord, tokenizer } from '../../trajectory/store/support.js';

const of = (answer: string, groupId: string | null, golds: string[] = [], given: number | null = null) => ({
  record: { ...makeRecord(`${answer} ${groupId}`, { answer }), groupId },
  goldenAnswers: golds,
  given,
});
const always = (name: string, value: number | null): Scorer => ({
  name,
  score: async (items) => items.map(() => value),
});
const settings = { rule: 'outcome', formatWeight: 0.1, searchCost: 0 } as const;
const never = new AbortController().signal;
const grader = (more: Partial<GraderSettings> = {}) =>
  createGrader({ tokenizer, settings, scorer: null, judge: null, majority: false, ...more });

test('in the order of trust: what was given, gold answers, the judge, the vote, nothing', async () => {
  const answers = [
    of('Paris', 'a', ['Lyon'], 0.3),
    of('Paris', 'b', ['Paris']),
    of('Lyon', 'c'),
    of('Lyon', 'c'),
    of('Nice', 'c'),
  ];
  const seen = async (more: Partial<GraderSettings>) =>
    (await grader(more)(answers, never)).map((grade) => grade && [grade.scores.reward, grade.source]);
  expect(await seen({})).toEqual([[0.3, 'feedback'], [1, 'gold'], null, null, null]);
  expect(await seen({ majority: true })).toEqual([
    [0.3, 'feedback'],
    [1, 'gold'],
    [1, 'majority'],
    [1, 'majority'],
    [0, 'majority'],
  ]);
  expect((await seen({ majority: true, judge: always('judge', 0.6) })).slice(2)).toEqual(
    Array(3).fill([0.6, 'judge']),
  );
});

test('a program of the user takes the place of the rule, not of the figures beside it', async () => {
  const [grade] = await grader({ scorer: always('mine', -2) })([of('Paris', 'a', ['Paris'])], never);
  expect(grade).toMatchObject({ source: 'gold', rule: 'mine', scores: { reward: -2, em: 1 } });
});

test('one voter is no majority', async () => {
  expect(await grader({ majority: true })([of('Paris', 'alone')], never)).toEqual([null]);
});
