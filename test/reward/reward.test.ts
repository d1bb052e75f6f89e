import { configSchema } from '../../src/config/index.js';
import { DEFAULT_REWARD, REWARD_RULES, rewardOf, scoreRecord } from '../../src/reward/index.js';
import { readJson } from '../support/fixtures.js';
import { createKit, doneOf } from '../support/rollout-kit.js';

interface Case {
  em: 0 | 1;
  wellFormed: boolean;
  formatScore: number;
  reward: number;
  ssrlReleased: number;
}

test('outcome and format: the four values of the paper and the released continuous form', () => {
  const { outcomeAndFormat } = readJson('losses', 'rewards.json') as { outcomeAndFormat: Case[] };
  expect(outcomeAndFormat.length).toBeGreaterThan(10);
  for (const { em, wellFormed, formatScore, reward, ssrlReleased } of outcomeAndFormat) {
    const parts = { em, subEm: em, f1: em, wellFormed, formatScore, searches: 0 };
    expect(rewardOf(parts)).toBe(em);
    expect(rewardOf(parts, { ...DEFAULT_REWARD, rule: 'outcome+format' })).toBeCloseTo(reward, 9);
    expect(rewardOf(parts, { ...DEFAULT_REWARD, rule: 'outcome+format-score' })).toBeCloseTo(ssrlReleased, 9);
  }
});

test('each search takes its cost off', () => {
  const parts = { em: 1, subEm: 1, f1: 1, wellFormed: true, formatScore: 1, searches: 3 } as const;
  expect(rewardOf(parts, { ...DEFAULT_REWARD, searchCost: 0.05 })).toBeCloseTo(0.85, 12);
});

test('a record is scored by its answer, not by what passages say', async () => {
  const kit = createKit({
    turns: [
      '<think>look</think><search>capital of Portugal</search>',
      '<think>so</think><answer>the Lisbon</answer>',
    ],
  });
  const { record } = doneOf(await kit.events());
  expect(scoreRecord(record, kit.tokenizer, ['Lisbon'])).toEqual({
    reward: 1,
    em: 1,
    subEm: 1,
    f1: 1,
    formatScore: 1,
    wellFormed: true,
    searches: 1,
  });
  expect(scoreRecord(record, kit.tokenizer, ['Portugal']).reward).toBe(0);
});

test('words in common, or a gold answer as a part, where the configuration asks for them', async () => {
  const kit = createKit({ turns: ['<think>so</think><answer>It is Lisbon, of course</answer>'] });
  const { record } = doneOf(await kit.events());
  const rewards = REWARD_RULES.map((rule) => {
    const { rewardRule } = configSchema.parse({ training: { rewardRule: rule } }).training;
    const settings = { ...DEFAULT_REWARD, rule: rewardRule };
    return [rule, scoreRecord(record, kit.tokenizer, ['Lisbon', 'Lisbon city'], settings).reward];
  });
  expect(Object.fromEntries(rewards)).toMatchObject({
    outcome: 0,
    f1: 2 / 6,
    'sub-exact-match': 1,
  });
  expect(configSchema.shape.training.unwrap().shape.rewardRule.unwrap().options).toEqual([...REWARD_RULES]);
});

test('no answer: nothing but what the format earns', async () => {
  const kit = createKit({ turns: ['hm', 'hm', 'hm', 'hm', 'hm'] });
  const { record } = doneOf(await kit.events());
  expect(record.answer).toBeNull();
  const settings = { ...DEFAULT_REWARD, rule: 'outcome+format' as const };
  expect(scoreRecord(record, kit.tokenizer, ['Lisbon'], settings)).toMatchObject({ reward: 0, em: 0, f1: 0 });
});
