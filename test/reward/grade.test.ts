import { type GradedItem, gradeAll, ruleText, type ScoredItem, type Scorer } from '../../src/reward/index.js';
import { type Label, labelOfGolds, NO_LABEL } from '../../src/trajectory/index.js';
import { makeRecord, tokenizer } from '../trajectory/store/support.js';

const none = NO_LABEL;
const gold = (...answers: string[]): Label => labelOfGolds(answers);
const reward = (value: number, golds = none.golds): Label => ({ reward: { value, sources: [] }, golds });

const item = (answer: string, label: Label, groupAnswers?: string[]): GradedItem => ({
  record: makeRecord(answer, { answer }),
  label,
  ...(groupAnswers ? { groupAnswers } : {}),
});

/** Notes what it was asked. */
function scorer(name: string, value: number | null): Scorer & { readonly asked: ScoredItem[] } {
  const asked: ScoredItem[] = [];
  return {
    name,
    asked,
    async score(items) {
      asked.push(...items);
      return items.map(() => value);
    },
  };
}

const settings = { rule: 'outcome', formatWeight: 0.1, searchCost: 0 } as const;

test('what is known best counts: reward, gold, judge, majority, nothing', async () => {
  const judge = scorer('judge', 0.7);
  const items = [
    item('Paris', reward(-0.5, gold('Paris').golds)),
    item('Paris', gold('paris')),
    item('Lyon', gold('Paris')),
    item('Nice', none, ['Nice', 'Nice', 'Lyon']),
  ];
  expect(await gradeAll(items, { tokenizer, settings, judge, majority: true })).toEqual([
    { value: -0.5, source: 'feedback', rule: 'feedback' },
    { value: 1, source: 'gold', rule: ruleText(settings) },
    { value: 0, source: 'gold', rule: ruleText(settings) },
    { value: 0.7, source: 'judge', rule: 'judge' },
  ]);
  expect(judge.asked.map(({ answer, goldAnswers }) => [answer, goldAnswers])).toEqual([['Nice', []]]);
});

test('the vote of the group where a judge is missing or cannot tell', async () => {
  const items = [
    item('Nice', none, ['Nice', 'nice', 'Lyon']),
    item('Lyon', none, ['Nice', 'nice', 'Lyon']),
    item('Lyon', none, ['Nice', 'Lyon']),
    item('Lyon', none),
    // A single voter has no majority.
    item('Lyon', none, ['Lyon']),
  ];
  const values = async (judge: Scorer | null, majority = true) =>
    (await gradeAll(items, { tokenizer, judge, majority })).map((grade) => grade?.value ?? null);
  expect(await values(null)).toEqual([1, 0, null, null, null]);
  expect(await values(scorer('unsure', null))).toEqual([1, 0, null, null, null]);
  expect(await values(null, false)).toEqual([null, null, null, null, null]);
});

test('one scale in a group: where the judge can tell of some answers only, no vote speaks for the others', async () => {
  const ofGroup = (id: string, answer: string) => {
    const item = { record: { ...makeRecord(id, { answer }), groupId: id[0] as string }, label: none };
    return { ...item, groupAnswers: ['Nice', 'Nice', 'Lyon'] };
  };
  const items = ['a1', 'a2', 'b1', 'b2'].map((id) => ofGroup(id, 'Nice'));
  const judge: Scorer = {
    name: 'judge',
    score: async (asked) => asked.map(({ id }) => (id === 'a1' ? 0.4 : null)),
  };
  expect(await gradeAll(items, { tokenizer, judge, majority: true })).toEqual([
    { value: 0.4, source: 'judge', rule: 'judge' },
    null,
    { value: 1, source: 'majority', rule: 'majority' },
    { value: 1, source: 'majority', rule: 'majority' },
  ]);
});

test('a scorer takes the place of the rule, for gold answers only', async () => {
  const own = scorer('http', 3);
  const items = [item('Paris', gold('Paris')), item('Paris', reward(0.1)), item('Paris', none)];
  expect(await gradeAll(items, { tokenizer, scorer: own })).toEqual([
    { value: 3, source: 'gold', rule: 'http' },
    { value: 0.1, source: 'feedback', rule: 'feedback' },
    null,
  ]);
  expect(own.asked).toHaveLength(1);
});
